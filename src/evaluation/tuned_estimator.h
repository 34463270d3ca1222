/// @file
/// An estimator that is ready: its base is chosen, its plan frozen, its methods trained.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/chunk_result.h"
#include "evaluation/options.h"

namespace crais {

class BaseRule;
class Driver;
class EstimatorParts;
struct Rounds;

/// The cost of learning a method.
struct Learning {
  Cost cost;
  double seconds = 0.0;  // of one thread
};

/// The result of tuning, which all chunks share.
struct TunedState {
  std::string base;                           // the rule's name
  std::shared_ptr<const BaseRule> rule = {};  // null: Estimator::restore makes it of the name
  std::optional<at::ScalarType> forces = {};  // type of the forces, if less exact than values
  std::optional<Plan> plan;  // absent if nothing is annealed, or if each problem has its own plan
  std::optional<Witness> witness = {};      // a second opinion, if it was asked for
  Cost tuning;                              // of choosing and planning, with pilots' bases
  std::map<std::string, Learning> learned;  // by name of the method
};

/// A tuned estimator, made by Estimator::tune. Immutable: threads may share it.
///
///     crais::TunedEstimator ready = crais::Estimator({.seed = 1}).tune(target);
///     crais::ChunkResult result = ready.estimate(0, target);
class TunedEstimator {
 public:
  TunedEstimator(std::shared_ptr<const EstimatorParts> parts, TunedState state,
                 std::vector<std::shared_ptr<const Method>> methods);

  const EstimateOptions& options() const;
  const TunedState& state() const { return state_; }
  /// The number of annealed chains of a problem.
  int64_t num_chains() const;
  /// True if chunks share no plan, but have one each.
  bool plans_by_chunk() const;
  /// The same with another state.
  TunedEstimator with(TunedState state) const { return {parts_, std::move(state), methods_}; }

  /// Every method and repeat, on problems that are chunk number `chunk` of the run: every random
  /// number is of streams of (seed, chunk, purpose), whatever else runs.
  /// With `error`, the last round is the result, flagged, where a target throws Error kInterrupted.
  /// Cost: in the result, that of bases and of a plan of its own apart.
  ChunkResult estimate(int64_t chunk, const Target& target) const;

 private:
  void estimate(const Target& target, ChunkResult& result, Rounds& rounds) const;

  std::shared_ptr<const EstimatorParts> parts_;
  TunedState state_;
  std::vector<std::shared_ptr<const Method>> methods_;
};

}  // namespace crais
