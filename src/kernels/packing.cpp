#include "kernels/packing.h"

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

/// 1 / steps, padded with zeros to a multiple of `rows`.
at::Tensor units_of(const at::Tensor& steps, int64_t rows) {
  return filled((1 / steps).to(at::kFloat).view({-1, 1}), rows, 1).squeeze(1).contiguous();
}

}  // namespace

at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows, int64_t group) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1) / group, group}).transpose(1, 2).contiguous();
}

PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor steps = steps_of(w), scaled = w.to(at::kDouble) * steps, high = scaled.round();
  const at::Tensor low = ((scaled - high) * (1 << kLowBits)).round().clamp(-127, 127);
  const at::Tensor start = (1 << (kLowShift - 1)) - kCoarseOffset * low.sum(1);
  return {panels_of(high.to(at::kShort), panel_rows, 2),
          panels_of(low.to(at::kChar), panel_rows, 4),
          filled(start.to(at::kInt).unsqueeze(1), panel_rows, 1).squeeze(1).contiguous(),
          units_of(steps, panel_rows)};
}

PackedBytes panels_of_bytes(const at::Tensor& w, int64_t panel_rows) {
  constexpr double kMostSteps = 1e30;  // for a column of zeros
  const at::Tensor wide = w.to(at::kDouble).t();
  const at::Tensor steps = (kByteSteps / wide.abs().amax(1, true)).clamp_max(kMostSteps);
  const at::Tensor bytes = (wide * steps).round() + kByteOffset;
  return {panels_of(bytes.to(at::kByte), panel_rows, 4), units_of(steps, panel_rows)};
}

}  // namespace crais
