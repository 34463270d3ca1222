// Pictures of data: thumbnails, grids and PNG files.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace crais {

/// Larger pictures are averaged down to this many pixels a side.
constexpr int64_t kThumbnailSide = 64;

/// Pictures of `data` [N, values], each of `shape`: uint8 [N, rows, cols] for a shape [rows, cols]
/// or [1, rows, cols], [N, rows, cols, 3] for [3, rows, cols] or [rows, cols, 3]. Flat data
/// [values] count as square pictures if a side has at least 16 pixels. Undefined for any other
/// shape. Numbers in [0, 1] are used as they are; others are scaled to their range.
at::Tensor thumbnails_of(const at::Tensor& data, const std::vector<int64_t>& shape);

/// Writes `images` [N, rows * cols], grey values in [0, 1] (clamped), row by row into a grid of
/// `columns`, with black cells at the end of the last row and one grey pixel between neighbours.
/// Atomic. Throws Error kCannotCreate or kIo as write_file_atomic does.
void write_image_grid(const std::filesystem::path& path, const at::Tensor& images, int64_t rows,
                      int64_t cols, int64_t columns);

/// The content of a PNG file with grey values [rows, cols] or colours [rows, cols, 3], uint8.
/// Throws Error kInternal if the encoder fails.
std::string png_of(const at::Tensor& pixels);

}  // namespace crais
