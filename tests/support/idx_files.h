// IDX files, and what gzip makes of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/zip_writer.h"

namespace crais::testing {

inline std::string idx_header(uint32_t magic, const std::vector<uint32_t>& shape) {
  std::string bytes;
  const auto append = [&](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  };
  append(magic);
  for (const uint32_t extent : shape) append(extent);
  return bytes;
}

/// `count` images of rows x cols whose values count 0, 1, 2, ... modulo 251.
inline std::string idx_images(uint32_t count, uint32_t rows, uint32_t cols) {
  std::string bytes = idx_header(0x803, {count, rows, cols});
  for (uint32_t i = 0; i < count * rows * cols; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

inline std::string idx_labels(uint32_t count) {
  std::string bytes = idx_header(0x801, {count});
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

inline std::string gzip(const std::string& bytes) { return deflated(bytes, 16 + MAX_WBITS); }

}  // namespace crais::testing
