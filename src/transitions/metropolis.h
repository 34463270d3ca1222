/// @file
/// What proposals have in common: a step along the annealed gradient, and accepting or rejecting.
#pragma once

#include <ATen/ATen.h>

#include "core/path.h"
#include "core/transition.h"

namespace crais {

/// p + step grad log gamma_beta at cached particles, where the path is at `point`; step [P,1,1] or
/// [P,K,1].
at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles);

/// A kick of half a step and the drift after it: p as above, and e + 2 half p.
struct Drifted {
  at::Tensor p, e;  // [P,K,D]
};
Drifted kicked_and_drifted(const at::Tensor& p, const at::Tensor& half, const PathPoint& point,
                           const Particles& particles);

/// Takes each proposal with probability min(1, exp(log_ratio)), log_ratio [P,K] float64; where that
/// is not finite it is rejected, and counted unless the density there is zero. Momenta go with
/// their particles.
///                                                                        [Metropolis et al. 1953]
Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng);

}  // namespace crais
