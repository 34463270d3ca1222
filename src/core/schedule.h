/// @file
/// Rules for the temperatures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "core/particles.h"
#include "core/path.h"
#include "core/plan_error.h"
#include "core/registry.h"

namespace crais {

/// The state of an annealing run when it asks for its next temperature.
struct Progress {
  int64_t index;               // transitions made so far
  const at::Tensor& beta;      // [P] float64, the current beta of the particles
  const Particles& particles;  // with their cached densities
  const at::Tensor& log_w;     // [P,K] float64, weights so far
  bool shared;                 // one schedule for all problems: rules average their statistics

  /// A statistic [P] of each problem; if the schedule is shared, its mean over the problems, [P].
  at::Tensor pool(const at::Tensor& statistic) const;
};

/// A rule for the next temperature. A rule reads cached densities and never evaluates a target.
///
///     auto rule = crais::ScheduleRegistry::instance().make("schedule", "cess:0.9", {});
///     bool by_particles = rule->is_adaptive();  // true: a pilot runs the rule and freezes it
class ScheduleRule {
 public:
  virtual ~ScheduleRule() = default;

  /// The next beta of every problem, [P] in (beta, 1]; 1 if beta is already 1. Throws
  /// ScheduleError, with the numbers that led to it, if the rule stalls or gives up early.
  virtual at::Tensor next(const Progress& progress, const Path& path) const = 0;

  /// All betas [T+1,P], or [T+1,1] if shared, if the schedule is known before the run. Undefined if
  /// the particles decide.
  virtual at::Tensor betas() const { return {}; }
  bool is_adaptive() const { return !betas().defined(); }
};

/// Options of all schedule rules. A rule ignores the options that it does not use.
struct ScheduleOptions {
  int64_t steps = 64;     // transitions of a heuristic
  double min_step = 0.0;  // least step of beta, for adaptive rules
  double max_step = 0.125;
  double tolerance = 1e-3;      // constant rate: jump to 1 once the remaining variance is below
  bool weighted = false;        // use the importance weights in statistics of the particles
  bool weighted_ratio = false;  // constant rate: weights in the mass ratio, even if not `weighted`
};

using ScheduleRegistry = Registry<ScheduleRule, const ScheduleOptions&>;

}  // namespace crais
