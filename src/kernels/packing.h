// Weights in the order in which the kernels read them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// W [rows, columns] as [panels][columns, filled][panel_rows].
at::Tensor panels_of(const at::Tensor& w, int64_t panel_rows);

/// W [rows, columns] in bfloat16 as [blocks of columns][blocks of rows][2 tiles][16][16][2].
at::Tensor tiles_of(const at::Tensor& w);

/// `count` parts of W, each the rounded rest of the parts before it, in bfloat16 as [blocks of
/// columns][blocks of rows][parts][2 tiles][16][16][2].
at::Tensor tiles_of_parts(const at::Tensor& w, int64_t count);

/// The memory of FixedPointWeights: int16, int8, int32, float32.
struct PackedFixedPoint {
  at::Tensor high, low, start, unit;
};

/// W [outputs, inputs] in fixed point.
PackedFixedPoint fixed_point_of(const at::Tensor& w, int64_t panel_rows);

/// W [outputs, inputs] in bytes for the backward pass, as panels or as tiles, and the units of
/// inputs.
struct PackedBytes {
  at::Tensor bytes, unit;
};
PackedBytes panels_of_bytes(const at::Tensor& w, int64_t panel_rows);
PackedBytes tiles_of_bytes(const at::Tensor& w);

}  // namespace crais
