// Funnels of a density: places where the scales of many coordinates are small together.
#pragma once

#include <ATen/ATen.h>

#include "core/cost.h"
#include "core/target.h"

namespace crais {

/// How scales depend on a few coordinates, the drivers, as curvatures show it.
struct Funnels {
  at::Tensor drivers;     // [D] bool
  at::Tensor dependent;   // [D] bool: coordinates whose scales depend on the drivers
  at::Tensor is_concave;  // [D] bool: all curvatures along this coordinate were positive
  at::Tensor draws;       // [M,K,D] float64: K rough draws at each place far along the drivers
  // [2,D,1+D] float64: weights of 1 and z in two affine functions t and r, if the log-scale of a
  // coordinate is r - knee(t) (core/coupling.h); else 0. The precision is that of two normals,
  // whose scales are log-linear in the drivers.
  at::Tensor knees;
};

/// What is known of funnels without a look at the density at z [N,D]: nothing.
Funnels no_funnels(const at::Tensor& z);

/// Looks for drivers at draws z [N,D] float64 of one density. Draws seldom show a neck, but
/// curvatures have no noise: one coordinate moves, and they show which scales change. Then drivers
/// are moved far out, and the other coordinates are drawn there by Laplace's method, where the
/// density is not negligible.                                               [Rue et al. 2009]
/// Cost: added, 32 curvatures and one to four more for each coordinate, and if there are drivers 64
/// to 192 with two evaluations each.
Funnels find_funnels(const Target& one, const at::Tensor& z, at::Generator& rng, Cost& cost);

}  // namespace crais
