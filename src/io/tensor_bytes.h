// Tensors and numbers of raw bytes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace crais {

/// The bytes of a tensor of that shape. Returns nothing if its size overflows, or if its strides
/// would overflow with every size 0 taken as 1.
std::optional<uint64_t> bytes_of_shape(at::IntArrayRef shape, uint64_t element_size);

/// A tensor of that shape and type with the values `bytes`, little-endian and rows first. A bool
/// may be any byte in a file but not in memory: bytes other than 0 become true. Requires exactly
/// the bytes that shape and type need.
at::Tensor tensor_of_bytes(std::string_view bytes, at::IntArrayRef shape, at::ScalarType type);

/// The number of these bytes, the lowest first or, if `is_big`, the highest.
uint64_t number_of_bytes(std::string_view bytes, bool is_big = false);

}  // namespace crais
