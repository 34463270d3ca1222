// What bases share that choose between fits.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/affine_map.h"

namespace crais {

/// E_q[log gamma - log q] by draws e [P,K,D] of N(0, I), but for a constant that all q share: [P]
/// nats, float64. `log_density` [P,K] is log gamma at q(e).
at::Tensor evidence_bound(const at::Tensor& log_density, const at::Tensor& e, const AffineMap& q);

/// N(loc, matrix matrix^T) for the problems where `take` [P] holds, `other` for the rest.
AffineMap chosen(const at::Tensor& take, const at::Tensor& loc, const at::Tensor& matrix,
                 const AffineMap& other);

/// Of fits N(z_i, root_i root_i^T), S of each problem: |root_i^-1 (z_j - z_i)|^2, [P,S,S] float64.
/// z is [P,S,D], root [P,S,D,D].
at::Tensor mutual_distances(const at::Tensor& z, const at::Tensor& root);

/// The squared distance below which climbs in so many dimensions have ended at one mode.
double farthest_of_one_mode(int64_t dim);

}  // namespace crais
