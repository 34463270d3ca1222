// Normals fitted to draws: expectation and maximisation.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// J normals N(loc, root root^T) with shares that sum to 1, float64 on the CPU.
struct NormalMixture {
  at::Tensor loc;        // [J,D]
  at::Tensor root;       // [J,D,D] lower-triangular
  at::Tensor log_share;  // [J]

  int64_t size() const { return loc.size(0); }
};

/// `count` normals for draws z [N,D] by expectation and maximisation, from centres drawn far apart.
/// Each covariance is shrunk towards the mean of all within their groups with the weight of D + 2
/// draws.                                [Dempster, Laird & Rubin 1977; Arthur & Vassilvitskii
/// 2007]
NormalMixture fit_normals(const at::Tensor& z, int64_t count, at::Generator& rng);

/// The same from the normals at hand: their shares, places and shapes move.
NormalMixture refit_normals(const at::Tensor& z, const NormalMixture& from);

}  // namespace crais
