/// @file
/// A plan: temperatures and step sizes, tuned by a pilot and then frozen.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "paths/descent.h"
#include "samplers/anneal.h"

namespace crais {

/// All that an estimate needs to know in advance. C is P (one plan for each problem) or 1 (shared).
///
///     crais::PilotRun pilot = crais::run_pilot(problem, *path, *rule, *hmc, {}, pilot_rng);
///     crais::AnnealResult run = crais::anneal(problem, *path, pilot.plan, *hmc, 64, rng);
///     at::Tensor log_z = crais::log_normalizer(run.log_w).value;
struct Plan {
  at::Tensor betas;           // [T+1,C] float64, 0 to 1
  at::Tensor step_sizes;      // [T,C] float64; all zero in a plan without moves
  int64_t num_particles = 0;  // chains of each problem
  // Observations of the pilot, float64; undefined without a pilot.
  at::Tensor divergence = {};                    // [T+1,C]
  std::shared_ptr<const DescentPath> path = {};  // learned by a pilot, in place of the given path
  at::Tensor accept_prob = {};                   // [T,C], means over the pilot's particles
  at::Tensor ess = {};                           // [T+1,C], fractions of the pilot's particles

  int64_t num_steps() const { return step_sizes.size(0); }
  /// False for importance sampling: particles stay where the base has put them.
  bool has_moves() const { return (step_sizes > 0).any().item<bool>(); }
  /// The plan of importance sampling from the bases of `columns` problems: one step, no move.
  static Plan without_moves(int64_t columns, int64_t num_particles);
};

struct PilotOptions {
  int64_t num_particles = 16;
  int64_t max_steps = 8192;
  bool shared = true;
  std::optional<double> step_size;  // fixed; absent: tuned for each temperature
  double initial_step_size = 0.5;   // start of the tuning
  double target_acceptance = 0.0;   // 0: that of the transition
  int64_t interpolate = 0;          // stretch the schedule to this many steps (0: do not stretch)
  const Resampling* resampling = nullptr;
};

/// False if path, rule and step size are known in advance: `freeze` then needs no pilot.
bool needs_pilot(const Path& path, const ScheduleRule& rule, const PilotOptions& options);

/// The plan of a schedule and a step size that are known in advance. Cost: none.
Plan freeze(const ScheduleRule& rule, double step_size);

/// The result of a pilot: its plan, and a run whose weights are biased.
struct PilotRun {
  Plan plan;
  AnnealResult run;
};

/// Anneals once with `rule`, adapts the step size from temperature to temperature (Robbins-Monro on
/// the mean acceptance), and freezes the schedule and step sizes that it used. Its particles are
/// not for estimates. A path that needs it is learned first, by a pilot of its own (1 + L T
/// evaluations for each of its particles, T the number of steps down the path), and kept in the
/// plan. Cost: 1 + L T evaluations for each pilot particle, and the cost of learning.
PilotRun run_pilot(const Problem& problem, const Path& path, const ScheduleRule& rule,
                   const Transition& transition, const PilotOptions& options, at::Generator& rng);

/// A rough log Z [P] to centre a problem: geometric AIS under a plan of `steps` equal steps, tuned
/// by a first run. Cost: 2 (1 + L steps) evaluations for each pilot particle.
struct RoughNormalizer {
  at::Tensor value;  // [P] float64, nats
  Cost cost;
};
RoughNormalizer rough_log_normalizer(const Problem& problem, const Transition& transition,
                                     int64_t steps, const PilotOptions& options,
                                     at::Generator& rng);

/// Stretches each column of a plan to `steps` steps: betas and the pilot's observations by linear
/// interpolation in the fraction of steps, step sizes log-linearly in beta (the paper's starred
/// rows).
Plan interpolate(const Plan& plan, int64_t steps);

/// The plan of only the problems at `index` [Q].
Plan select(const Plan& plan, const at::Tensor& index);

/// The estimate: anneals new particles under the frozen plan. E[mean w] = Z. Cost: 1 + L T
/// evaluations a particle.
AnnealResult anneal(const Problem& problem, const Path& path, const Plan& plan,
                    const Transition& transition, int64_t num_particles, at::Generator& rng,
                    const Resampling* resampling = nullptr);

/// Reverse annealing under the frozen plan, from exact draws z [P,K,D] of each target. E[w] = 1/Z.
/// Cost: as for the forward run.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, const at::Tensor& z, at::Generator& rng);

/// Reverse annealing from K exact draws that the target makes. Throws Error kArgument if the target
/// cannot make them. Cost: as for the forward run.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, int64_t num_particles,
                            at::Generator& rng);

}  // namespace crais
