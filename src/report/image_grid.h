// Grey images laid out in a grid, as a PNG file.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>

namespace crais {

/// Writes `images` [N, rows * cols], grey values in [0, 1] (clamped), row by row into a grid of
/// `columns` (the last row filled up in black), one grey pixel between neighbours. Atomic.
/// Throws Error kCannotCreate or kIo as write_file_atomic does.
void write_image_grid(const std::filesystem::path& path, const at::Tensor& images, int64_t rows,
                      int64_t cols, int64_t columns);

}  // namespace crais
