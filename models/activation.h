/// @file
/// The activations between layers, as functions of tensors.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "models/activation_kind.h"

namespace crais {

/// Parses one of `activation_names`, such as "tanh" or "leaky-relu:0.2". Throws Error kArgument
/// that lists the names for any other text.
Activation parse_activation(const std::string& text);
std::string activation_names();
std::string to_string(Activation activation);

at::Tensor activate(Activation activation, const at::Tensor& x);
/// d activation / d input, from the input and the output of the activation.
at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output);

}  // namespace crais
