// log p(x, z) of an MLP decoder and its gradient, with a backward pass by hand.
#pragma once

#include <ATen/ATen.h>

#include "core/target.h"
#include "models/vae.h"

namespace crais {

/// d activation / d input, from the activation's input and output.
at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output);

/// log p(x, z) [P,K] and its gradient in z [P,K,D], both differentiable in z. x [P,1,pixels].
///
/// For cotangents c [P,K] of the value and v [P,K,D] of the gradient g the backward pass returns
/// c g + H v, H the Hessian of log p(x, z) in z: a matrix product a layer forward (v's tangent) and
/// one back, on activations that the first pass has kept. A double backward pass of a generic graph
/// builds, and walks, a graph of the gradient besides. There are no third derivatives.
Evaluation evaluate_decoder_with_graph(const Vae& vae, const at::Tensor& x, const at::Tensor& z);

}  // namespace crais
