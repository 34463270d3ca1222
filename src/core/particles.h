/// @file
/// Particles and the cached results of evaluating them.
#pragma once

#include <ATen/ATen.h>

#include "core/path.h"

namespace crais {

/// K particles of each of P problems in whitened coordinates. The cached densities turn every
/// reweighting into arithmetic. A value type: tensors are never written in place.
///
/// The base is N(0, I) in e, so grad log q0 = -e needs no storage.
struct Particles {
  at::Tensor e;               // [P,K,D]
  at::Tensor log_q0;          // [P,K] float64
  at::Tensor log_gamma;       // [P,K] float64, at e: log gamma(m + A e) + log|det A| - log_center
  at::Tensor grad_log_gamma;  // [P,K,D], with respect to e
  at::Tensor momentum;        // [P,K,D]; undefined until a kernel that keeps momenta has run
};

/// The annealed density at cached particles; beta [P]. Cost: no target evaluations.
PathPoint annealed(const Path& path, const at::Tensor& beta, const Particles& particles);
at::Tensor annealed_log_density(const Path& path, const at::Tensor& beta,
                                const Particles& particles);

/// |x|^2 of each particle: [P,K,D] -> [P,K] float64. One pass if autograd records nothing.
at::Tensor squared_norm(const at::Tensor& x);

/// Chooses for each particle: `yes` if `mask` [P,K] is true, else `no`. Tensors [P,K] or [P,K,D].
at::Tensor choose(const at::Tensor& mask, const at::Tensor& yes, const at::Tensor& no);

/// Chooses for each particle: `yes` if `mask` [P,K] is true, else `no`. Keeps momenta if both sides
/// have them.
Particles where(const at::Tensor& mask, const Particles& yes, const Particles& no);

}  // namespace crais
