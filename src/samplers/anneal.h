/// @file
/// The annealing loop.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/path.h"
#include "core/problem.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "samplers/resampling.h"

namespace crais {

/// The source of the step size of each move.
class StepSizes {
 public:
  virtual ~StepSizes() = default;
  /// The step sizes of move `index`: [P] float64.
  virtual at::Tensor at(int64_t index) const = 0;
  /// Receives the acceptance of that move, [P] means over particles. Frozen step sizes ignore it.
  virtual void observe(int64_t /*index*/, const at::Tensor& /*accept_prob*/) {}
};

struct AnnealOptions {
  int64_t num_particles = 16;
  int64_t max_steps = 8192;                // limit for an adaptive schedule
  bool shared = true;                      // one schedule for all problems
  const Resampling* resampling = nullptr;  // null: AIS, which is SMC without resampling
  bool record = false;                     // divergence, ESS and barrier
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
  at::Tensor barrier;         // [P] alone: see BarrierRecord
  int64_t num_nonfinite = 0;  // proposals rejected because their energy was not finite
  Cost cost;                  // summed over problems and particles
};

/// Annealed importance sampling from the base to the target                       [Neal 2001]
/// and sequential Monte Carlo                              [Del Moral, Doucet & Jasra 2006]
///
/// At each new temperature: log w += log gamma_{beta'}(e) - log gamma_beta(e), then resampling of
/// the problems that are due (every weight becomes the mean weight), then one move. E[w] = Z
/// exactly if schedule and step sizes are frozen. If they adapt, the run is a pilot.
///
/// Cost: 1 + L T evaluations a particle, L = transition.evaluations_per_step().
/// Throws ScheduleError if an adaptive schedule has not arrived after max_steps.
AnnealResult anneal(const Problem& problem, const Path& path, const ScheduleRule& rule,
                    const Transition& transition, StepSizes& step_sizes,
                    const AnnealOptions& options, at::Generator& rng);

/// Reverse annealing from exact draws `e` [P,K,D] of the target to the base. Each move comes before
/// the change of temperature. With log w += log gamma_beta(e) - log gamma_{beta'}(e), E[w] = 1/Z
/// exactly, so -log_mean_exp(log w) is an upper bound of log Z on average.         [Grosse, Ancha &
/// Roy 2016]
///
/// Each move leaves its density invariant and, with new momenta at the start, is its own reversal:
/// the same kernels in the opposite order reverse a forward run in distribution. `betas` [T+1,C]
/// and `step_sizes` are those of the forward run. Cost: 1 + L T evaluations a particle.
AnnealResult anneal_reverse(const Problem& problem, const Path& path, const at::Tensor& betas,
                            const Transition& transition, const StepSizes& step_sizes,
                            const at::Tensor& e, at::Generator& rng);

}  // namespace crais
