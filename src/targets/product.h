/// @file
/// Densities whose coordinates are independent.
#pragma once

#include <ATen/ATen.h>

#include "targets/replicated.h"

namespace crais {

/// gamma(z) = prod_d f_d(z_d). A derived class gives log f and its derivative for each coordinate.
/// Sums over coordinates are in float64 for every dtype of particles.
///
///     class Exponentials : public crais::Product {
///      public:
///       explicit Exponentials(const crais::TargetOptions& options)
///           : Product(options, 8, 8 * 0.0) {}
///
///      protected:  // of log-rates: Z = Gamma(1)^8
///       at::Tensor log_factors(const at::Tensor& z) const override { return z - z.exp(); }
///       at::Tensor slopes(const at::Tensor& z) const override { return 1 - z.exp(); }
///     };
class Product : public Replicated {
 public:
  Product(const TargetOptions& options, int64_t dim, std::optional<double> log_normalizer)
      : Replicated(options, dim, log_normalizer) {
    traits_.curvature_cost = 2;
  }

  at::Tensor log_density(const at::Tensor& z) const final {
    return log_factors(z).sum(-1, /*keepdim=*/false, at::kDouble);
  }
  Evaluation evaluate(const at::Tensor& z) const final { return {log_density(z), slopes(z)}; }

  /// The diagonal curvature, by autograd of the sum of the factors' slopes.
  at::Tensor curvature(const at::Tensor& z) const final;

 protected:
  /// log f_d(z_d) [P,K,D], nats, at z [P,K,D].
  virtual at::Tensor log_factors(const at::Tensor& z) const = 0;
  /// The derivatives d log f_d / d z_d [P,K,D].
  virtual at::Tensor slopes(const at::Tensor& z) const = 0;
};

/// The dimension of a specification such as "normal:128".
inline int64_t read_dim(Spec& spec, int64_t least = 1) {
  return spec.integer("dim", least, 1'000'000, 128);
}

}  // namespace crais
