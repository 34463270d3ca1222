/// @file
/// Mixtures of normals with diagonal covariances.
#pragma once

#include <ATen/ATen.h>

#include "targets/replicated.h"

namespace crais {

/// gamma(z) = sum_c w_c exp(-sum_d (z_d - m_cd)^2 / (2 v_cd)). The kernels are not normalised, so Z
/// = sum_c w_c prod_d sqrt(2 pi v_cd).
///
///     at::Tensor means = at::tensor({-3.0, 3.0}, at::kDouble).unsqueeze(1);  // [C,D]
///     crais::GaussianMixture modes({}, means, at::ones_like(means), at::zeros({2}, at::kDouble));
class GaussianMixture : public Replicated {
 public:
  /// means and variances [C,D], log_weights [C] of the kernels; all float64 on the CPU.
  GaussianMixture(const TargetOptions& options, const at::Tensor& means,
                  const at::Tensor& variances, const at::Tensor& log_weights);

  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  std::optional<Components> components(const at::Tensor& z) const override;

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override;

 private:
  /// log of the term of each component at z [P,K,D]: [P,K,C].
  at::Tensor log_terms(const at::Tensor& z) const;

  at::Tensor means_, variances_;  // [C,D]
  at::Tensor log_weights_;        // [C]
  at::Tensor shares_;             // [C], of Z
};

}  // namespace crais
