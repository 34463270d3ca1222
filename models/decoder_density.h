// log p(x, z) of a decoder under N(0, I) and quantities derived from it, by manual ATen code: one
// matrix product for each layer forward and one backward, without an autograd graph. On any device,
// for any floating type.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "models/network.h"

namespace crais {

/// log N(z; 0, I) [...], nats, at z [...,D].
at::Tensor log_standard_normal(const at::Tensor& z);

/// log p(x, z) [...], nats, at z [...,D] and x [...,pixels], whose leading sizes broadcast.
/// Differentiable.
at::Tensor log_joint(const DecoderNetwork& decoder, const at::Tensor& z, const at::Tensor& x);

/// log p(x, z) with its gradient [...,D] in z, whose products are in `forces` if that is set. For
/// dense layers without residual connections. Cost: one evaluation a row.
struct JointDensity {
  at::Tensor value, grad;
};
JointDensity log_joint_with_grad(const DecoderNetwork& decoder, const at::Tensor& z,
                                 const at::Tensor& x, std::optional<at::ScalarType> forces = {});

/// Gauss-Newton: I + J^T W J [P,D,D] at z [P,D], with J = d output / dz in closed form (a product
/// for each layer) and W the likelihood's curvature, s(1 - s) for Bernoulli pixels. Positive
/// definite. For dense layers. With `is_coarse`, allowed for float32 on the CPU, the entries of J
/// have a relative error of 1 in 256, which changes J^T W J by less than a hundredth of its
/// diagonal.
at::Tensor gauss_newton(const DecoderNetwork& decoder, const at::Tensor& z, bool is_coarse);
/// Cost in evaluations: the multiply-adds of J and J^T W J divided by those of an evaluation.
int64_t gauss_newton_cost(const DecoderNetwork& decoder);

}  // namespace crais
