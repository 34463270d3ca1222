// NumPy's .npy: one array, as numpy.load reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crais {

/// The content of a .npy file (format 1.0, little-endian float64, rows first) of `shape`.
/// Throws Error kInternal unless there are as many values as the shape has places.
std::string npy_text(const std::vector<int64_t>& shape, const std::vector<double>& values);

}  // namespace crais
