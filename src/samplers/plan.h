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

/// Everything an estimate needs to know beforehand. C is P (a plan per problem) or 1 (shared).
///
///     crais::PilotRun pilot = crais::run_pilot(problem, *path, *rule, *hmc, {}, pilot_rng);
///     crais::AnnealResult run = crais::anneal(problem, *path, pilot.plan, *hmc, 64, rng);
///     at::Tensor log_z = crais::log_normalizer(run.log_w).value;
struct Plan {
  at::Tensor betas;           // [T+1,C] float64, 0 to 1
  at::Tensor step_sizes;      // [T,C] float64
  int64_t num_particles = 0;  // chains of each problem
  // What the pilot saw on its way, float64; undefined without a pilot.
  at::Tensor divergence = {};                    // [T+1,C]
  std::shared_ptr<const DescentPath> path = {};  // that a pilot learned, in place of the one given
  at::Tensor accept_prob = {};                   // [T,C], means over its particles
  at::Tensor ess = {};                           // [T+1,C], fractions of its particles

  int64_t num_steps() const { return step_sizes.size(0); }
};

struct PilotOptions {
  int64_t num_particles = 16;
  int64_t max_steps = 8192;
  bool shared = true;
  std::optional<double> step_size;  // fixed; absent: tuned per temperature
  double initial_step_size = 0.5;   // where tuning begins
  double target_acceptance = 0.0;   // 0: the transition's own
  int64_t interpolate = 0;          // stretch the found schedule to this many steps (0: leave it)
  const Resampling* resampling = nullptr;
  AnnealObserver observe = {};  // empty: nobody
};

/// False if path, rule and step size are known beforehand: `freeze` then does without a pilot.
bool needs_pilot(const Path& path, const ScheduleRule& rule, const PilotOptions& options);

/// The plan of a schedule and a step size that are known beforehand. Cost: none.
Plan freeze(const ScheduleRule& rule, double step_size);

/// What a pilot leaves: the plan it settled on, and a run whose weights are not unbiased.
struct PilotRun {
  Plan plan;
  AnnealResult run;
};

/// Anneals once with `rule`, adapting the step size from temperature to temperature (Robbins-Monro
/// on the mean acceptance), and freezes what it used. Its particles are not for estimating. A path
/// that needs it is learned first, by a pilot of its own (see learn_path), and kept in the plan.
/// Cost: 1 + L T evaluations per pilot particle, and those of learning.
PilotRun run_pilot(const Problem& problem, const Path& path, const ScheduleRule& rule,
                   const Transition& transition, const PilotOptions& options, at::Generator& rng);

/// A rough log Z [P] to centre a problem with: geometric AIS under a plan of `steps` equal steps
/// that it tunes on the way. Cost: 2 (1 + L steps) evaluations per pilot particle.
struct RoughNormalizer {
  at::Tensor value;  // [P] float64, nats
  Cost cost;
};
RoughNormalizer rough_log_normalizer(const Problem& problem, const Transition& transition,
                                     int64_t steps, const PilotOptions& options,
                                     at::Generator& rng);

/// Stretches each column of a plan to `steps` steps: betas and what the pilot saw by linear
/// interpolation in the step's fraction, step sizes log-linearly in beta (the paper's starred
/// rows).
Plan interpolate(const Plan& plan, int64_t steps);

/// The plan of the problems at `index` [Q] alone.
Plan select(const Plan& plan, const at::Tensor& index);

/// The estimate: anneals fresh particles under the frozen plan. E[mean w] = Z.
/// Cost: 1 + L T evaluations per particle.
AnnealResult anneal(const Problem& problem, const Path& path, const Plan& plan,
                    const Transition& transition, int64_t num_particles, at::Generator& rng,
                    const Resampling* resampling = nullptr, const AnnealObserver& observe = {});

/// The way back under the frozen plan, from exact draws z [P,K,D] of each target. E[w] = 1/Z.
/// Cost: as the way there.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, const at::Tensor& z, at::Generator& rng,
                            const AnnealObserver& observe = {});

/// The same from K draws that the target makes. Throws Error kArgument if the target has no exact
/// draws. Cost: as the way there.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const Plan& plan,
                            const Transition& transition, int64_t num_particles, at::Generator& rng,
                            const AnnealObserver& observe = {});

}  // namespace crais
