// What differs between kinds of problems: their fits, plans and checks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "evaluation/choices.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// The driver of images, each with a fit of its own. A driver of other problems derives from it.
class Driver {
 public:
  virtual ~Driver() = default;

  /// The rule that `base` names in BaseRegistry.
  virtual std::unique_ptr<BaseRule> rule(const std::string& base) const { return make_base(base); }
  /// True if all problems are alike and share one fit.
  virtual bool shares_fit() const { return false; }
  /// The base that `auto` stands for: see choose_base.
  virtual BaseChoice choose(const EstimatorParts& parts, const Target& pilots, int64_t num_problems,
                            std::optional<at::ScalarType> forces) const {
    return choose_base(parts, pilots, num_problems, forces);
  }
  /// Makes the plan of all `num_problems` problems, where it is not the usual one, and adds what is
  /// asked of a whole run. Returns whether it made the plan. Cost: in `state`.
  virtual bool plan(const EstimatorParts& /*parts*/, const Target& /*pilots*/,
                    int64_t /*num_problems*/, TunedState& /*state*/) const {
    return false;
  }
  /// Checks a chunk by its weighted particles.
  virtual void check(const EstimatorParts& /*parts*/, const std::string& /*base*/,
                     const Problem& /*problem*/, const Plan& /*plan*/,
                     const WeightedParticles& /*found*/, ChunkResult& /*result*/) const {}
};

}  // namespace crais
