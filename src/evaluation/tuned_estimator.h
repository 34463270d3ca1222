/// @file
/// An estimator that is ready: base chosen, plan frozen, methods trained.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/chunk_result.h"
#include "evaluation/options.h"

namespace crais {

class BaseRule;
class EstimatorParts;
struct Rounds;

/// What a method took to learn.
struct Learning {
  Cost cost;
  double seconds = 0.0;  // of one thread
};

/// What tuning has found, and all chunks have in common.
struct TunedState {
  std::string base;                           // a name of BaseRegistry
  std::optional<at::ScalarType> forces = {};  // of what is annealed, where not as exact as values
  std::optional<Plan> plan;  // absent where nothing is annealed, and where each problem has its own
  std::optional<ChainsBySpread> by_spread = {};  // with mean_error, where it pays
  std::optional<Witness> witness = {};           // a second opinion, where one was asked for
  Cost tuning;                                   // of choosing and planning; pilots' bases included
  std::map<std::string, Learning> learned;       // by the names of methods that learn
};

/// Immutable: threads share it. Made by Estimator::tune.
///
///     crais::TunedEstimator ready = crais::tune(target, {.base = "laplace", .seed = 1});
///     crais::ChunkResult found = ready.estimate(0, target);
class TunedEstimator {
 public:
  TunedEstimator(std::shared_ptr<const EstimatorParts> parts, TunedState state,
                 std::vector<std::shared_ptr<const Method>> methods);

  const EstimateOptions& options() const;
  const TunedState& state() const { return state_; }
  /// Annealed chains of a problem, but with target_error and mean_error.
  int64_t num_chains() const;

  /// Every method and repeat, on problems that are chunk number `chunk` of the run: every random
  /// number is of streams of (seed, chunk, purpose), whatever else runs. `earlier` is the result of
  /// a run with fewer chains under the same plan: its chains are kept.
  /// With `error`, the last round is the result, flagged, where a target throws Error kInterrupted.
  /// Cost: in the result, that of bases and of a plan of its own apart.
  ChunkResult estimate(int64_t chunk, const Target& target,
                       const ChunkResult* earlier = nullptr) const;

 private:
  /// Adds to `result` what planning costs.
  Plan own_plan(const Target& target, const Problem& problem, uint64_t stream, ChunkResult& result,
                Rounds& rounds) const;
  void estimate(const Target& target, const ChunkResult* earlier, ChunkResult& result,
                Rounds& rounds) const;

  std::shared_ptr<const EstimatorParts> parts_;
  TunedState state_;
  std::shared_ptr<const BaseRule> base_;
  std::vector<std::shared_ptr<const Method>> methods_;
};

}  // namespace crais
