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

}  // namespace

at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor full = filled(w, panel_rows, panel_rows);
  return full.reshape({-1, panel_rows, full.size(1)}).transpose(1, 2).contiguous();
}

at::Tensor pairs_of(const at::Tensor& w, int64_t panel_rows) {
  const at::Tensor full = filled(w.to(at::kBFloat16), panel_rows, panel_rows);
  return full.reshape({full.size(0) / 2, 2, -1, panel_rows}).permute({2, 0, 3, 1}).contiguous();
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
  constexpr double kLargest = 32767, kLargestSum = 0x1p31;
  const at::Tensor wide = w.to(at::kDouble), size = wide.abs();
  // No sum may overflow, whatever the inputs: of kInputSteps times a row's numbers, each of which
  // rounding makes larger by half a step and its low part by another half at most.
  const double room = kLargestSum / kInputSteps - static_cast<double>(w.size(1) + 1);
  constexpr double kMostSteps = 1e30;  // of a row of zeros
  const at::Tensor steps =
      at::minimum(kLargest / size.amax(1), room / size.sum(1)).clamp_max(kMostSteps).unsqueeze(1);
  const at::Tensor scaled = wide * steps, high = scaled.round();
  const at::Tensor low = ((scaled - high) * (1 << kLowBits)).round().clamp(-127, 127);
  const at::Tensor start = (1 << (kLowShift - 1)) - kCoarseOffset * low.sum(1);
  const int64_t missing = (panel_rows - w.size(0) % panel_rows) % panel_rows;
  return {groups_of(high.to(at::kShort), panel_rows, 2),
          groups_of(low.to(at::kChar), panel_rows, 4),
          at::constant_pad_nd(start.to(at::kInt), {0, missing}).contiguous(),
          at::constant_pad_nd((1 / steps).squeeze(1).to(at::kFloat), {0, missing}).contiguous()};
}

}  // namespace crais
