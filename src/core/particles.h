/// @file
/// Particles and what has been computed of them.
#pragma once

#include <ATen/ATen.h>

#include "core/path.h"

namespace crais {

/// K particles of each of P problems in whitened coordinates, with the cache that makes every
/// reweighting arithmetic. A value: tensors are never written in place.
///
/// The base is N(0, I) in e, so grad log q0 = -e needs no storage.
struct Particles {
  at::Tensor e;               // [P,K,D]
  at::Tensor log_q0;          // [P,K] float64
  at::Tensor log_gamma;       // [P,K] float64, of e: log gamma(m + A e) + log|det A| - log_center
  at::Tensor grad_log_gamma;  // [P,K,D], with respect to e
  at::Tensor momentum;        // [P,K,D]; undefined until a kernel that keeps it has run
};

/// The annealed density at cached particles, beta [P]. Cost: no target evaluations.
PathPoint annealed(const Path& path, const at::Tensor& beta, const Particles& particles);
at::Tensor annealed_log_density(const Path& path, const at::Tensor& beta,
                                const Particles& particles);

/// |x|^2 of each particle: [P,K,D] -> [P,K] float64. One pass, where no graph is made.
at::Tensor squared_norm(const at::Tensor& x);

/// Particle by particle, `yes` where `mask` [P,K] holds and `no` elsewhere: [P,K] or [P,K,D].
at::Tensor choose(const at::Tensor& mask, const at::Tensor& yes, const at::Tensor& no);

/// Particle by particle, `yes` where `mask` [P,K] holds and `no` elsewhere; momenta where both
/// have them.
Particles where(const at::Tensor& mask, const Particles& yes, const Particles& no);

}  // namespace crais
