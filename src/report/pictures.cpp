#include "report/pictures.h"

#include <algorithm>
#include <cmath>

#include "util/error.h"
#include "util/files.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace crais {
namespace {

constexpr int64_t kColourChannels = 3;

constexpr int64_t kLeastFlatSide = 16;  // a smaller number of values may be a square by chance

/// Data that are pictures as [N, channels, rows, cols]; undefined for other data.
at::Tensor as_pictures(const at::Tensor& data, const std::vector<int64_t>& shape) {
  if (shape.size() == 1) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(shape[0])));
    if (side * side != shape[0] || side < kLeastFlatSide) return {};
    return data.reshape({-1, 1, side, side});
  }
  if (shape.size() == 2) return data.reshape({-1, 1, shape[0], shape[1]});
  if (shape.size() != 3) return {};
  if (shape[0] == 1 || shape[0] == kColourChannels)
    return data.reshape({-1, shape[0], shape[1], shape[2]});
  if (shape[2] == 1 || shape[2] == kColourChannels)
    return data.reshape({-1, shape[0], shape[1], shape[2]}).permute({0, 3, 1, 2});
  return {};
}

}  // namespace

at::Tensor thumbnails_of(const at::Tensor& data, const std::vector<int64_t>& shape) {
  at::Tensor pictures = as_pictures(data, shape);
  if (!pictures.defined() || pictures.numel() == 0) return {};
  const auto low = pictures.min().item<double>(), high = pictures.max().item<double>();
  if (low < 0 || high > 1) pictures = (pictures - low) / std::max(high - low, 1e-12);
  const int64_t rows = std::min(pictures.size(2), kThumbnailSide);
  const int64_t cols = std::min(pictures.size(3), kThumbnailSide);
  if (rows < pictures.size(2) || cols < pictures.size(3))
    pictures = at::adaptive_avg_pool2d(pictures.to(at::kFloat), {rows, cols});
  const at::Tensor bytes = pictures.mul(255.0).round().to(at::kByte);
  return bytes.size(1) == 1 ? bytes.squeeze(1).contiguous()
                            : bytes.permute({0, 2, 3, 1}).contiguous();
}

void write_image_grid(const std::filesystem::path& path, const at::Tensor& images, int64_t rows,
                      int64_t cols, int64_t columns) {
  TORCH_CHECK(images.dim() == 2 && images.size(1) == rows * cols, "images of ", images.sizes(),
              " are not [N, ", rows * cols, "]");
  constexpr double kGapGrey = 0.5;
  const int64_t lines = (images.size(0) + columns - 1) / columns;
  const at::Tensor cells =
      at::constant_pad_nd(images.clamp(0.0, 1.0), {0, 0, 0, lines * columns - images.size(0)});
  const at::Tensor framed =
      at::constant_pad_nd(cells.view({lines, columns, rows, cols}), {0, 1, 0, 1}, kGapGrey);
  const at::Tensor grid =
      framed.transpose(1, 2).reshape({lines * (rows + 1), columns * (cols + 1)});
  // Without the gap after the last row and column.
  const at::Tensor inside = grid.slice(0, 0, -1).slice(1, 0, -1);
  write_file_atomic(path, png_of(inside.mul(255.0).round().to(at::kByte)));
}

std::string png_of(const at::Tensor& pixels) {
  TORCH_CHECK(pixels.scalar_type() == at::kByte && (pixels.dim() == 2 || pixels.dim() == 3),
              "pixels of ", pixels.sizes(), " are no picture");
  const at::Tensor rows = pixels.contiguous();
  const int height = static_cast<int>(rows.size(0)), width = static_cast<int>(rows.size(1));
  const int channels = rows.dim() == 3 ? static_cast<int>(rows.size(2)) : 1;
  const auto append = [](void* bytes, void* data, int size) {
    static_cast<std::string*>(bytes)->append(static_cast<const char*>(data),
                                             static_cast<size_t>(size));
  };
  std::string png;
  if (!stbi_write_png_to_func(append, &png, width, height, channels, rows.data_ptr(),
                              width * channels))
    throw internal_error("the PNG encoder failed");
  return png;
}

}  // namespace crais
