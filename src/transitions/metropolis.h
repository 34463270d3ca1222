// What proposals have in common: the annealed density at a particle, and accepting or rejecting.
#pragma once

#include <ATen/ATen.h>

#include "core/path.h"
#include "core/transition.h"

namespace crais {

/// log gamma_beta and its gradient at cached particles. Cost: no target evaluations.
struct Annealed {
  at::Tensor log_density;  // [P,K] float64
  at::Tensor grad;         // [P,K,D]
};

/// beta [P,1].
Annealed annealed(const Path& path, const at::Tensor& beta, const Particles& particles);

/// p + step grad log gamma_beta at cached particles: `point` is the path's there. step [P,K or
/// 1,1].
at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles);

/// Takes each proposal with probability min(1, exp(log_ratio)), log_ratio [P,K] float64; where that
/// is not finite it is rejected and counted. Momenta go with their particles.
///                                                                        [Metropolis et al. 1953]
Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng);

}  // namespace crais
