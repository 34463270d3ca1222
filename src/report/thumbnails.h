// Small pictures of the data that were evaluated.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
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

/// The picture number `i` as a PNG file.
std::string thumbnail_png(const at::Tensor& thumbnails, int64_t i);

}  // namespace crais
