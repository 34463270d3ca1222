// log p(x, z) of a decoder under N(0, I), and what is derived from it, by hand in ATen: a matrix
// product a layer forward and one back, no graph. On any device, of any floating type.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "models/network.h"

namespace crais {

/// log N(z; 0, I) [...], nats, of z [...,D].
at::Tensor log_standard_normal(const at::Tensor& z);

/// log p(x, z) [...], nats, of z [...,D] and x [...,pixels], whose leading sizes broadcast.
/// Differentiable.
at::Tensor log_joint(const DecoderNetwork& decoder, const at::Tensor& z, const at::Tensor& x);

/// With its gradient [...,D] in z, whose products are in `forces` where given. Dense layers without
/// residual connections. Cost: one evaluation a row.
struct JointDensity {
  at::Tensor value, grad;
};
JointDensity log_joint_with_grad(const DecoderNetwork& decoder, const at::Tensor& z,
                                 const at::Tensor& x, std::optional<at::ScalarType> forces = {});

/// Gauss-Newton: I + J^T W J [P,D,D] at z [P,D], with J = d output / dz in closed form (a product
/// per layer) and W the likelihood's own curvature, s(1 - s) for Bernoulli pixels. Positive
/// definite. Dense layers. With `is_coarse`, which float32 on the CPU may be, entries of J are
/// rounded to 1 in 256, which moves J^T W J by less than a hundredth of its diagonal.
at::Tensor gauss_newton(const DecoderNetwork& decoder, const at::Tensor& z, bool is_coarse);
/// By multiply-adds: those of J and J^T W J over those of an evaluation.
int64_t gauss_newton_cost(const DecoderNetwork& decoder);

}  // namespace crais
