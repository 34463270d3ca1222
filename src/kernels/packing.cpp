#include "kernels/packing.h"

#include <vector>

#include "kernels/fused_kernel.h"

namespace crais {
namespace {

/// x with zeros up to a multiple of `rows` and `columns`.
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

/// The steps [rows, 1], float64, that a number takes in W [rows, columns] in fixed point.
at::Tensor steps_of(const at::Tensor& w) {
  constexpr double kLargest = 32767, kLargestSum = 0x1p31;
  const at::Tensor size = w.to(at::kDouble).abs();
  // No sum may overflow, whatever a row is multiplied by, kInputSteps at most. The sixteenth is for
  // rounding, which makes a weight larger by half a step and its low part by another half.
  constexpr double kRoom = 15.0 / 16 * kLargestSum / kInputSteps;
  static_assert(kLargestSum / kInputSteps - kRoom > kWidestFixedPoint);
  constexpr double kMostSteps = 1e30;  // of a row of zeros
  return at::minimum(kLargest / size.amax(1), kRoom / size.sum(1))
      .clamp_max(kMostSteps)
      .unsqueeze(1);
}

at::Tensor units_of(const at::Tensor& steps) { return (1 / steps).squeeze(1).to(at::kFloat); }

/// x [rows] with zeros up to a multiple of `rows`.
at::Tensor filled_up(const at::Tensor& x, int64_t rows) {
  return filled(x.unsqueeze(1), rows, 1).squeeze(1).contiguous();
}

}  // namespace

at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1)}).transpose(1, 2).contiguous();
}

at::Tensor tiles_of(const at::Tensor& w) {
  const at::Tensor full = filled(w, kTileBlock, kTileBlock);
  return full.reshape({full.size(0) / kTileBlock, 16, 2, -1, 2, 16})
      .permute({3, 0, 4, 1, 5, 2})
      .contiguous();
}

at::Tensor tiles_of_parts(const at::Tensor& w, int64_t count) {
  at::Tensor rest = w;
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor part = rest.to(at::kBFloat16);
    parts.push_back(tiles_of(part));
    rest = rest - part.to(at::kFloat);
  }
  return at::stack(parts, 2).contiguous();
}

PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor steps = steps_of(w), scaled = w.to(at::kDouble) * steps, high = scaled.round();
  const at::Tensor low = ((scaled - high) * (1 << kLowBits)).round().clamp(-127, 127);
  const at::Tensor start = (1 << (kLowShift - 1)) - kCoarseOffset * low.sum(1);
  return {groups_of(high.to(at::kShort), panel_rows, 2),
          groups_of(low.to(at::kChar), panel_rows, 4), filled_up(start.to(at::kInt), panel_rows),
          filled_up(units_of(steps), panel_rows)};
}

PackedFours fixed_fours_of(const at::Tensor& w, int64_t panel_rows) {
  constexpr double kMostSteps = 1e30;  // of a column of zeros
  const at::Tensor wide = w.to(at::kDouble);
  const at::Tensor steps = (kByteSteps / wide.abs().amax(0)).clamp_max(kMostSteps);
  const at::Tensor bytes = ((wide * steps).round() + kByteOffset).to(at::kByte);
  return {groups_of(bytes.t(), panel_rows, 4), filled_up((1 / steps).to(at::kFloat), panel_rows)};
}

}  // namespace crais
