// Tensors of raw bytes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace crais {

/// What a tensor of that shape takes; nothing where its size or its strides, as if no size were 0,
/// overflow.
std::optional<uint64_t> bytes_of_shape(at::IntArrayRef shape, uint64_t element_size);

/// A tensor of that shape and type whose values, little-endian and rows first, are `bytes`. A truth
/// value may be any byte in a file, but not in memory: what is not 0 becomes true. Requires as many
/// bytes as shape and type need.
at::Tensor tensor_of_bytes(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type);

}  // namespace crais
