/// @file
/// The annealing loop.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

#include "core/path.h"
#include "core/problem.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "samplers/resampling.h"

namespace crais {

/// Where the step size of each move comes from.
class StepSizes {
 public:
  virtual ~StepSizes() = default;
  /// For move `index`: [P] float64.
  virtual at::Tensor at(int64_t index) const = 0;
  /// What that move's acceptance was, [P] means over particles. Frozen step sizes do not listen.
  virtual void observe(int64_t /*index*/, const at::Tensor& /*accept_prob*/) {}
};

/// Hears of the particles and their log-weights [P,K] at each temperature beta [P] of a way, in its
/// order: weighted, they are particles of the density there. On the way there the first are draws
/// of the base, the others have been moved; on the way back none have been moved where they are.
/// Log-weights lack the centre of the problem.
using AnnealObserver = std::function<void(const at::Tensor& beta, const Particles& particles,
                                          const at::Tensor& log_w)>;

struct AnnealOptions {
  int64_t num_particles = 16;
  int64_t max_steps = 8192;                // of an adaptive schedule
  bool shared = true;                      // one schedule for all problems
  const Resampling* resampling = nullptr;  // absent: AIS, which is SMC that never resamples
  bool record = false;                     // divergence and ESS at each temperature
  AnnealObserver observe = {};             // empty: nobody
};

struct AnnealResult {
  Particles particles;  // at beta = 1
  at::Tensor log_w;     // [P,K] float64, nats: log_mean_exp estimates log Z
  Genealogy genealogy;
  at::Tensor betas;        // [T+1,P] float64
  at::Tensor step_sizes;   // [T,P] float64
  at::Tensor accept_prob;  // [T,P] float64, means over particles
  // With `record`, else undefined: [T+1,P] float64, after the move at each temperature.
  at::Tensor divergence;      // see DivergenceRecord
  at::Tensor ess;             // of the log-weights, fractions
  int64_t num_nonfinite = 0;  // proposals rejected because their energy was not finite
  Cost cost;                  // summed over problems and particles
};

/// Annealed importance sampling from the base to the target                       [Neal 2001]
/// and sequential Monte Carlo                              [Del Moral, Doucet & Jasra 2006]
///
/// log w += log gamma_{beta'}(e) - log gamma_beta(e) at each new temperature, then resampling where
/// it is due (every weight becomes their mean), then one move. E[w] = Z exactly where schedule and
/// step sizes are frozen; where they adapt it is a pilot.
///
/// Cost: 1 + L T evaluations per particle, L = transition.evaluations_per_step().
/// Throws ScheduleError if an adaptive schedule has not arrived after max_steps.
AnnealResult anneal(const Problem& problem, const Path& path, const ScheduleRule& rule,
                    const Transition& transition, StepSizes& step_sizes,
                    const AnnealOptions& options, at::Generator& rng);

/// The way back: from exact draws `e` [P,K,D] of the target to the base, each move before the
/// change of temperature. E[w] = 1/Z exactly, for log w += log gamma_beta(e) - log
/// gamma_{beta'}(e), so -log_mean_exp(log w) is an upper bound of log Z on average.  [Grosse, Ancha
/// & Roy 2016]
///
/// Each move leaves its density invariant and, momenta drawn afresh at the start, is its own
/// reversal: the same kernels in the opposite order undo the way there in distribution.
/// `betas` [T+1,C] and `step_sizes` as of the way there. Cost: 1 + L T evaluations per particle.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const at::Tensor& betas,
                            const Transition& transition, const StepSizes& step_sizes,
                            const at::Tensor& e, at::Generator& rng,
                            const AnnealObserver& observe = {});

}  // namespace crais
