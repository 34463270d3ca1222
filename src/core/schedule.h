/// @file
/// Where to put the temperatures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "core/particles.h"
#include "core/path.h"
#include "core/plan_error.h"
#include "core/registry.h"

namespace crais {

/// Where an annealing run stands when it asks for its next temperature.
struct Progress {
  int64_t index;               // transitions made so far
  const at::Tensor& beta;      // [P] float64, where the particles are
  const Particles& particles;  // with their cached densities
  const at::Tensor& log_w;     // [P,K] float64, weights so far
  bool shared;                 // one schedule for all problems: rules average their statistics

  /// A statistic [P] of each problem, or its mean over problems [P] where the schedule is shared.
  at::Tensor pool(const at::Tensor& statistic) const;
};

/// A rule for the next temperature. Reads caches only: never evaluates a target.
///
///     auto rule = crais::ScheduleRegistry::instance().make("schedule", "cess:0.9", {});
///     bool by_particles = rule->is_adaptive();  // true: a pilot runs it, and freezes what it did
class ScheduleRule {
 public:
  virtual ~ScheduleRule() = default;

  /// The next beta of every problem, [P] in (beta, 1], or 1 where it is 1 already.
  /// Throws ScheduleError, with the numbers that led to it, where the rule stalls or gives up
  /// early.
  virtual at::Tensor next(const Progress& progress, const Path& path) const = 0;

  /// [T+1,P] or [T+1,1] (shared), where the schedule is known before the run; undefined where the
  /// particles decide.
  virtual at::Tensor betas() const { return {}; }
  bool is_adaptive() const { return !betas().defined(); }
};

/// What every rule may be told. Rules ignore what they have no use for.
struct ScheduleOptions {
  int64_t steps = 64;     // transitions of a heuristic
  double min_step = 0.0;  // of beta, adaptive rules
  double max_step = 0.125;
  double tolerance = 1e-3;      // constant rate: jump to 1 once the remaining variance is below
  bool weighted = false;        // use the importance weights in statistics of the particles
  bool weighted_ratio = false;  // constant rate: in its mass ratio, whatever `weighted` says
};

using ScheduleRegistry = Registry<ScheduleRule, const ScheduleOptions&>;

}  // namespace crais
