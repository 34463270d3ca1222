// Normal mixtures fitted to draws by expectation maximisation.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

inline at::Tensor on_cpu(const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); }

/// J normals N(loc, root root^T) with shares that sum to 1, float64 on the CPU.
struct NormalMixture {
  at::Tensor loc;        // [J,D]
  at::Tensor root;       // [J,D,D] lower-triangular
  at::Tensor log_share;  // [J]

  int64_t size() const { return loc.size(0); }
};

/// Fits `count` normals to draws z [N,D] by expectation maximisation, from centres drawn far apart.
/// Each covariance is shrunk towards the mean of all within-group covariances with the weight of D
/// + 2 draws.          [Dempster, Laird & Rubin 1977; Arthur & Vassilvitskii 2007]
NormalMixture fit_normals(const at::Tensor& z, int64_t count, at::Generator& rng);

/// Fits J normals to draws z [N,D], starting from the normals' shares [J,N] in each draw.
NormalMixture refit_normals(const at::Tensor& z, const at::Tensor& shares);

/// The shares of the normals in the density at z [N,D]: [J,N].
at::Tensor responsibilities(const NormalMixture& mixture, const at::Tensor& z);

/// The log density of the mixture at z [N,D]: [N].
at::Tensor log_density(const NormalMixture& mixture, const at::Tensor& z);

}  // namespace crais
