/// @file
/// From options and pilot problems to an estimator that is ready.
#pragma once

#include <cstdint>
#include <memory>

#include "evaluation/options.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// Options whose names have been made into what they stand for. Immutable.
///
///     crais::Estimator estimator({.chains = 16, .seed = 1});
///     crais::TunedEstimator ready = estimator.tune(*target.slice(0, 16), target.num_problems());
///     crais::ChunkResult found = ready.estimate(0, target);
class Estimator {
 public:
  /// `factory` makes the methods that options name, empty: the registry. Throws Error kArgument
  /// for unknown names, values out of range and options that exclude each other.
  explicit Estimator(EstimateOptions options, MethodFactory factory = {});

  const EstimateOptions& options() const;
  bool anneals() const;
  bool needs_exact_draws() const;
  /// True if a method has chains of which more can be had later.
  bool has_independent_chains() const;
  /// True if a method learns.
  bool learns() const;
  /// True if tuning takes a pilot: the schedule adapts, or step sizes do, or the path is learned.
  bool needs_pilot() const;
  /// True if the particles decide on the temperatures.
  bool is_adaptive() const;

  /// Of so many problems, how many `tune` takes for pilots: the first of them.
  int64_t num_pilots(int64_t num_problems) const;

  /// Chooses the base and makes the shared plan on the first `options().pilot_problems` of
  /// `pilots`, with `mean_error` how many chains a spread of weights is worth on all of them, and
  /// lets methods learn that do. `num_problems` are to be estimated in all; 0 stands for those of
  /// `pilots`. Every random number is of streams that no chunk has, so the pilots may be estimated
  /// too. `base = "auto"`: see choose_base. Throws ScheduleError, BudgetError, DivergedError. Cost:
  /// `state().tuning` and `learned`.
  TunedEstimator tune(const Target& pilots, int64_t num_problems = 0) const;

  /// What `tune` made when it found `state`, of the same options. Only methods learn anew: what
  /// they learn is a function of options and problems, and is not stored.
  TunedEstimator restore(TunedState state, const Target& pilots) const;

 private:
  std::shared_ptr<const Target> first_pilots(const Target& given) const;

  std::shared_ptr<const EstimatorParts> parts_;
};

/// An estimator for the problems of `target`, tuned on the first of them.
///
///     crais::TunedEstimator estimator = crais::tune(target, {.base = "laplace", .seed = 1});
TunedEstimator tune(const Target& target, const EstimateOptions& options);

}  // namespace crais
