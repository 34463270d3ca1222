// NumPy's .npy format: one array, as numpy.save and numpy.load use it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crais {

/// The content of a .npy file (format 1.0, little-endian, rows first) for float64 or uint8 on the
/// CPU.
std::string npy_text(const at::Tensor& values);

/// True if the bytes begin like a .npy file.
bool is_npy(std::string_view bytes);

/// The array in `bytes`. Accepts formats 1.0 to 3.0, little-endian, rows or columns first, of these
/// types: bool, floats of 16, 32 and 64 bits, signed integers of 8 to 64 bits, unsigned integers of
/// 8, 16 and 32 bits. Unsigned integers of 16 and 32 bits become the next larger signed type, which
/// can hold them.
///
/// The header is a Python literal. The parser accepts its three keys and nothing else. Throws Error
/// kData, one line that begins with `where`, for any other header and if the values do not fill the
/// file exactly.
at::Tensor parse_npy(std::string_view bytes, const std::string& where);

}  // namespace crais
