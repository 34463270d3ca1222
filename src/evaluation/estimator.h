/// @file
/// Makes an estimator from options and pilot problems.
#pragma once

#include <cstdint>
#include <memory>

#include "evaluation/options.h"
#include "evaluation/tuned_estimator.h"

namespace crais {

/// Options with the objects that their names stand for. Immutable.
///
///     crais::Estimator estimator({.chains = 16, .seed = 1});
///     crais::TunedEstimator ready = estimator.tune(*target.slice(0, 16), target.num_problems());
///     crais::ChunkResult result = ready.estimate(0, target);
class Estimator {
 public:
  /// Without a driver: for images. Throws Error kArgument for unknown names, values out of range
  /// and options that exclude each other.
  explicit Estimator(EstimateOptions options, std::shared_ptr<const Driver> driver = {});

  const EstimateOptions& options() const;
  bool anneals() const;
  bool has_upper() const;
  bool learns() const;
  /// True if tuning needs a pilot: for an adaptive schedule, adaptive step sizes or a learned path.
  bool needs_pilot() const;
  /// True if the particles determine the temperatures.
  bool is_adaptive() const;

  /// Chooses the base and makes the shared plan on the first `options().pilot_problems` of
  /// `pilots`. Lets methods learn. `num_problems` problems will be estimated in all; 0: as many as
  /// `pilots`. Random numbers are of streams that no chunk uses: pilots may be estimated too.
  /// Throws ScheduleError, BudgetError, DivergedError. Cost: `state().tuning` and `learned`.
  TunedEstimator tune(const Target& pilots, int64_t num_problems = 0) const;

  /// The result of an earlier `tune` with the same options, from its `state`. Only methods learn
  /// again, and a fit that problems share is made again: both are a function of options and
  /// problems, and are not stored.
  TunedEstimator restore(TunedState state, const Target& pilots) const;

 private:
  std::shared_ptr<const Target> first_pilots(const Target& given) const;
  void share_fit(TunedState& state, const Target& given) const;

  std::shared_ptr<const EstimatorParts> parts_;
};

}  // namespace crais
