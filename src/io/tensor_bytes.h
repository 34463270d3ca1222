// Tensors of raw bytes.
#pragma once

#include <ATen/ATen.h>

#include <string_view>

namespace crais {

/// A tensor of that shape and type whose values, little-endian and rows first, are `bytes`. A truth
/// value may be any byte in a file, but not in memory: what is not 0 becomes true. Requires as many
/// bytes as shape and type need.
at::Tensor tensor_of_bytes(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type);

}  // namespace crais
