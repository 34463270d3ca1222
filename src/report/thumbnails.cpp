#include "report/thumbnails.h"

#include <algorithm>
#include <cmath>

#include "io/npy.h"
#include "report/png.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kColourChannels = 3;

constexpr int64_t kLeastFlatSide = 16;  // fewer numbers may be a square by chance

/// Channels first: [N, channels, rows, cols] of data that are pictures, else undefined.
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

at::Tensor parse_thumbnails(std::string_view bytes, int64_t count, const std::string& where) {
  at::Tensor found = parse_npy(bytes, where);
  const bool is_picture =
      found.dim() == 3 || (found.dim() == 4 && found.size(3) == kColourChannels);
  if (found.scalar_type() != at::kByte || !is_picture || found.size(0) != count ||
      found.size(1) < 1 || found.size(1) > kThumbnailSide || found.size(2) < 1 ||
      found.size(2) > kThumbnailSide)
    throw data_error(where + ": does not hold " + std::to_string(count) + " thumbnails");
  return found;
}

std::string thumbnail_png(const at::Tensor& thumbnails, int64_t i) { return png_of(thumbnails[i]); }

}  // namespace crais
