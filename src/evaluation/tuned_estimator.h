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

/// What a method took to learn.
struct Learning {
  Cost cost;
  double seconds = 0.0;  // of one thread
};

/// What tuning has found, and all chunks have in common.
struct TunedState {
  std::string base;          // a name of BaseRegistry
  std::optional<Plan> plan;  // absent where nothing is annealed, and where each problem has its own
  Cost tuning;               // of choosing and planning; pilots' bases included
  std::map<std::string, Learning> learned;  // by the names of methods that learn
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

  /// Every method and repeat, on problems that are chunk number `chunk` of the run: every random
  /// number is of streams of (seed, chunk, purpose), whatever else runs.
  /// Cost: in the result, that of bases and of a plan of its own apart.
  ChunkResult estimate(int64_t chunk, const Target& target) const;

 private:
  std::shared_ptr<const EstimatorParts> parts_;
  TunedState state_;
  std::shared_ptr<const BaseRule> base_;
  std::vector<std::shared_ptr<const Method>> methods_;
};

}  // namespace crais
