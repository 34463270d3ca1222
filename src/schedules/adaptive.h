/// @file
/// The common part of the adaptive rules, which read the particles.
#pragma once

#include <functional>
#include <string>

#include "core/schedule.h"

namespace crais {

/// Clips the step that a rule proposes to [min_step, max_step] and to 1. Throws if the rule does
/// not move.
///
///     class Halving : public crais::AdaptiveSchedule {  // half of the rest each time
///      public:
///       using AdaptiveSchedule::AdaptiveSchedule;
///
///      protected:
///       at::Tensor propose(const crais::Progress& progress, const crais::Path&) const override {
///         return at::where(progress.beta < 0.99, (1 + progress.beta) / 2, 1.0);
///       }
///       std::string name() const override { return "halving"; }
///     };
class AdaptiveSchedule : public ScheduleRule {
 public:
  explicit AdaptiveSchedule(const ScheduleOptions& options) : options_(options) {}

  at::Tensor next(const Progress& progress, const Path& path) const final;

 protected:
  /// The proposed next beta [P]. A value above 1 means 1; +inf means 1 in one step, however large.
  virtual at::Tensor propose(const Progress& progress, const Path& path) const = 0;
  /// The rule's name in error messages: "cess:0.7".
  virtual std::string name() const = 0;

  const ScheduleOptions& options() const { return options_; }
  /// The weights for statistics: normalised log-weights [P,K], uniform unless `weighted`.
  at::Tensor statistic_weights(const Progress& progress) const {
    return statistic_weights(progress, options_.weighted);
  }
  static at::Tensor statistic_weights(const Progress& progress, bool weighted);

 private:
  ScheduleOptions options_;
};

/// The largest beta' in [beta, beta + max_step] at which `statistic` ([P], falling in beta') is
/// still at least `bound` [P], to 1e-11 of the step. A search on cached densities: no target
/// evaluations.
at::Tensor largest_step(const at::Tensor& beta, double max_step, const at::Tensor& bound,
                        const std::function<at::Tensor(const at::Tensor&)>& statistic);

}  // namespace crais
