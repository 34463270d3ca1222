// NumPy's .npy: one array, as numpy.save writes and numpy.load reads it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crais {

/// The content of a .npy file (format 1.0, little-endian, rows first) of float64 or uint8 on the
/// CPU.
std::string npy_text(const at::Tensor& values);

/// True if the bytes begin as a .npy file does.
bool is_npy(std::string_view bytes);

/// The array in `bytes`: format 1.0 to 3.0, rows or columns first, little-endian; truth values,
/// floats of 16, 32 and 64 bits, signed integers of 8 to 64 bits and unsigned ones of 8, 16 and 32.
/// The latter two become the next larger signed type, which holds them.
///
/// The header is a Python literal; it is parsed by hand, and must have its three keys and nothing
/// else. Throws Error kData, one line that begins with `where`, at anything else, and unless the
/// values fill the file exactly.
at::Tensor parse_npy(std::string_view bytes, const std::string& where);

}  // namespace crais
