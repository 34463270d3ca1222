// What differs between kinds of problems: their fits, plans and checks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/choices.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// What rounds have come to.
struct Rounds {
  std::vector<Round> rounds;
  std::optional<ChunkRun> last;   // estimates of the last round
  std::optional<double> barrier;  // see ChunkResult
  Cost cost;                      // of rounds and pilots
  bool is_short = false;          // `max_evaluations` left less than was wanted
};

/// The driver of images, each with a fit of its own. A driver of other problems derives from it.
class Driver {
 public:
  virtual ~Driver() = default;

  /// The rule that `base` names in BaseRegistry.
  virtual std::unique_ptr<BaseRule> rule(const std::string& base) const { return make_base(base); }
  /// True if all problems of a chunk are alike and share one fit.
  virtual bool shares_fit() const { return false; }
  /// The base that `auto` stands for: see choose_base.
  virtual BaseChoice choose(const EstimatorParts& parts, const Target& pilots, int64_t num_problems,
                            std::optional<at::ScalarType> forces) const {
    return choose_base(parts, pilots, num_problems, forces);
  }
  /// True if no plan is shared because each chunk has one of its own.
  virtual bool plans_by_chunk(const EstimateOptions& /*options*/,
                              const std::string& /*base*/) const {
    return false;
  }
  /// The plan of a chunk. Cost: added to `result.tuning`, that of rounds to `rounds`.
  virtual Plan plan(const EstimatorParts& parts, const std::string& base, const Problem& problem,
                    ChunkResult& result, Rounds& rounds) const;
  /// Completes `state` by what is asked of a whole run.
  virtual void complete(const EstimatorParts& /*parts*/, const Target& /*target*/,
                        TunedState& /*state*/) const {}
  /// Checks a chunk by its weighted particles.
  virtual void check(const EstimatorParts& /*parts*/, const std::string& /*base*/,
                     const Problem& /*problem*/, const Plan& /*plan*/,
                     const WeightedParticles& /*found*/, ChunkResult& /*result*/) const {}
};

}  // namespace crais
