/// @file
/// Parts that all proposals share: a step along the annealed gradient, and acceptance or rejection.
#pragma once

#include <ATen/ATen.h>

#include "core/path.h"
#include "core/transition.h"

namespace crais {

/// p + step grad log gamma_beta at cached particles whose path point is `point`; step [P,1,1] or
/// [P,K,1].
at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles);

/// The result of a half-step kick and the drift after it: p after the kick, and e + 2 half p.
struct Drifted {
  at::Tensor p, e;  // [P,K,D]
};
Drifted kicked_and_drifted(const at::Tensor& p, const at::Tensor& half, const PathPoint& point,
                           const Particles& particles);

/// Accepts each proposal with probability min(1, exp(log_ratio)), log_ratio [P,K] float64. A
/// proposal whose log_ratio is not finite is rejected, and counted unless its density is zero.
/// Momenta move with their particles.                   [Metropolis et al. 1953]
Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng);

}  // namespace crais
