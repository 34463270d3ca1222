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

struct Base;
class BaseRule;
class Driver;
class EstimatorParts;

/// The cost of learning a method.
struct Learning {
  Cost cost;
  double seconds = 0.0;  // of one thread
};

/// Pilots of an estimate that goes on until its error is small.
struct Rounds {
  std::vector<Round> each;
  // The integral over beta of the standard deviation of the work rate, by the plan's pilot, in the
  // part of the base where it is largest.
  std::optional<double> barrier;
  bool is_short = false;         // `max_evaluations` left less than was wanted
  std::optional<ChunkRun> last;  // estimates of the last round
};

/// The result of tuning, which all chunks share.
struct TunedState {
  std::string base;                           // the rule's name
  std::shared_ptr<const BaseRule> rule = {};  // null: Estimator::restore makes it of the name
  std::shared_ptr<const Base> fit = {};       // of all problems, if they share one; never in files
  std::optional<at::ScalarType> forces = {};  // type of the forces, if less exact than values
  // Of all problems, or of the parts of the fit that they share. Absent if nothing is annealed, or
  // if each problem has its own plan.
  std::optional<Plan> plan;
  Rounds rounds = {};                       // with `error`, if problems are replicates
  bool is_cut = false;                      // tuning was stopped: the last round is the result
  std::optional<Witness> witness = {};      // a second opinion, if it was asked for
  Cost fitting;                             // of the fit that all problems share
  Cost tuning;                              // of choosing and planning, with the fits for that
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
  /// The same with another state.
  TunedEstimator with(TunedState state) const { return {parts_, std::move(state), methods_}; }

  /// Every method and repeat, on problems that are chunk number `chunk` of the run: every random
  /// number is of streams of (seed, chunk, purpose), whatever else runs.
  /// Cost: in the result, that of bases and of a plan of its own apart.
  ChunkResult estimate(int64_t chunk, const Target& target) const;

 private:
  std::shared_ptr<const EstimatorParts> parts_;
  TunedState state_;
  std::vector<std::shared_ptr<const Method>> methods_;
};

}  // namespace crais
