// Pictures of data: thumbnails, grids, and PNG files of them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace crais {

/// Sides of larger pictures are averaged down to this many pixels.
constexpr int64_t kThumbnailSide = 64;

/// Pictures of `data` [N, values], each datum of `shape`: uint8 [N, rows, cols] of a shape
/// [rows, cols] or [1, rows, cols], [N, rows, cols, 3] of [3, rows, cols] or [rows, cols, 3].
/// Flat data [values] are square pictures of at least 16 pixels a side.
/// Undefined of any other shape: such data are no pictures. Numbers in [0, 1] are taken as they
/// are, others over their range.
at::Tensor thumbnails_of(const at::Tensor& data, const std::vector<int64_t>& shape);

/// The content of a .npy file with `count` thumbnails. Throws Error kData, beginning with `where`,
/// at anything else.
at::Tensor parse_thumbnails(std::string_view bytes, int64_t count, const std::string& where);

/// Writes `images` [N, rows * cols], grey values in [0, 1] (clamped), row by row into a grid of
/// `columns` (the last row filled up in black), one grey pixel between neighbours. Atomic.
/// Throws Error kCannotCreate or kIo as write_file_atomic does.
void write_image_grid(const std::filesystem::path& path, const at::Tensor& images, int64_t rows,
                      int64_t cols, int64_t columns);

/// The content of a PNG file: grey values [rows, cols] or colours [rows, cols, 3], uint8.
/// Throws Error kInternal if the encoder fails.
std::string png_of(const at::Tensor& pixels);

}  // namespace crais
