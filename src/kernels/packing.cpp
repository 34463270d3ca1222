#include "kernels/packing.h"

#include <vector>

#include "kernels/fused_kernel.h"

namespace crais {
namespace {

/// x padded with zeros to a multiple of `rows` and `columns`.
at::Tensor filled(const at::Tensor& x, int64_t rows, int64_t columns) {
  const auto missing = [&](int64_t dim, int64_t unit) {
    return (unit - x.size(dim) % unit) % unit;
  };
  return at::constant_pad_nd(x, {0, missing(1, columns), 0, missing(0, rows)});
}

/// W [outputs, inputs] as [panels of outputs][inputs / group, filled][panel_rows][group].
at::Tensor groups_of(const at::Tensor& w, int64_t panel_rows, int64_t group) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1) / group, group}).transpose(1, 2).contiguous();
}

/// The number of steps [rows, 1], float64, for a number 1 in each row of W [rows, columns] in fixed
/// point.
at::Tensor steps_of(const at::Tensor& w) {
  constexpr double kLargest = 32767, kLargestSum = 0x1p31;
  const at::Tensor size = w.to(at::kDouble).abs();
  // No sum may overflow for factors of at most kInputSteps. One sixteenth is left for rounding,
  // which may add half a step to a weight and half a step to its low part.
  constexpr double kRoom = 15.0 / 16 * kLargestSum / kInputSteps;
  static_assert(kLargestSum / kInputSteps - kRoom > kWidestFixedPoint);
  constexpr double kMostSteps = 1e30;  // for a row of zeros
  return at::minimum(kLargest / size.amax(1), kRoom / size.sum(1))
      .clamp_max(kMostSteps)
      .unsqueeze(1);
}

/// The number of steps [1, inputs] of W [outputs, inputs] in bytes, for each input.
at::Tensor byte_steps_of(const at::Tensor& w) {
  constexpr double kMostSteps = 1e30;  // for a column of zeros
  return (kByteSteps / w.to(at::kDouble).abs().amax({0}, true)).clamp_max(kMostSteps);
}

at::Tensor whole_steps(const at::Tensor& w, const at::Tensor& steps) {
  return (w.to(at::kDouble) * steps).round();
}

/// 1 / steps, padded with zeros to a multiple of `rows`.
at::Tensor units_of(const at::Tensor& steps, int64_t rows) {
  return filled((1 / steps).to(at::kFloat).view({-1, 1}), rows, 1).squeeze(1).contiguous();
}

/// W [rows, columns] as [blocks of columns][blocks of rows][2 tiles][16][16][group].
at::Tensor tiles_of_groups(const at::Tensor& w, int64_t group) {
  const at::Tensor full = filled(w, kTileBlock / 2 * group, kTileBlock);
  return full.reshape({-1, 16, group, full.size(1) / kTileBlock, 2, 16})
      .permute({3, 0, 4, 1, 5, 2})
      .contiguous();
}

}  // namespace

at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1)}).transpose(1, 2).contiguous();
}

at::Tensor tiles_of(const at::Tensor& w) { return tiles_of_groups(w.to(at::kBFloat16), 2); }

at::Tensor tiles_of_parts(const at::Tensor& w, int64_t count) {
  at::Tensor rest = w;
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(tiles_of(rest));
    rest = rest - rest.to(at::kBFloat16).to(at::kFloat);
  }
  return at::stack(parts, 2).contiguous();
}

PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor steps = steps_of(w), scaled = w.to(at::kDouble) * steps, high = scaled.round();
  const at::Tensor low = ((scaled - high) * (1 << kLowBits)).round().clamp(-127, 127);
  const at::Tensor start = (1 << (kLowShift - 1)) - kCoarseOffset * low.sum(1);
  return {groups_of(high.to(at::kShort), panel_rows, 2),
          groups_of(low.to(at::kChar), panel_rows, 4),
          filled(start.to(at::kInt).unsqueeze(1), panel_rows, 1).squeeze(1).contiguous(),
          units_of(steps, panel_rows)};
}

PackedBytes panels_of_bytes(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor steps = byte_steps_of(w), bytes = whole_steps(w, steps) + kByteOffset;
  return {groups_of(bytes.to(at::kByte).t(), panel_rows, 4), units_of(steps.t(), panel_rows)};
}

PackedBytes tiles_of_bytes(const at::Tensor& w) {
  const at::Tensor steps = byte_steps_of(w);
  return {tiles_of_groups(whole_steps(w, steps).to(at::kChar), 4), units_of(steps.t(), kTileBlock)};
}

}  // namespace crais
