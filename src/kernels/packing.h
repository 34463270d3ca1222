// Weights in the order in which the kernels read them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// W [rows, columns] as [panels][columns / group, filled][panel_rows][group].
at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows, int64_t group = 1);

/// The memory of FixedPointWeights: int16, int8, int32, float32.
struct PackedFixedPoint {
  at::Tensor high, low, start, unit;
};

/// W [outputs, inputs] in fixed point.
PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows);

/// W [outputs, inputs] in bytes for the backward pass, and the units of inputs.
struct PackedBytes {
  at::Tensor bytes, unit;
};
PackedBytes panels_of_bytes(const at::Tensor& w, int64_t panel_rows);

}  // namespace crais
