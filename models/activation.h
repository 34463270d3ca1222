/// @file
/// The nonlinearities between layers, as functions of tensors.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "models/activation_kind.h"

namespace crais {

/// One of `activation_names`, as "tanh" or "leaky-relu:0.2". Throws Error kArgument on another,
/// listing these.
Activation parse_activation(const std::string& text);
std::string activation_names();
std::string to_string(Activation activation);

at::Tensor activate(Activation activation, const at::Tensor& x);
/// d activation / d input, from the activation's input and output.
at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output);

}  // namespace crais
