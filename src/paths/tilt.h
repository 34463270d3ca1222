/// @file
/// Tables of rising functions of one number, many functions at once.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// R functions h(kappa) with slopes w in [0, 1]: cubic Hermite between nodes, linear outside them.
/// Each has a continuous derivative. Both h and kappa - h rise everywhere.
struct Tilts {
  at::Tensor kappa;  // [R,N] float64, nodes, ascending
  at::Tensor h;      // [R,N], values at the nodes
  at::Tensor w;      // [R,N], slopes at the nodes

  /// h = 0 on nodes from `low` to `high`, [R] each.
  static Tilts flat(const at::Tensor& low, const at::Tensor& high, int64_t nodes);
  /// The functions with values h and slopes w at the nodes. Slopes too steep for their neighbouring
  /// values are cut.
  static Tilts through(const at::Tensor& kappa, const at::Tensor& h, const at::Tensor& w);
};

struct TiltPoint {
  at::Tensor h, w;  // [R,M]
};
/// The functions at kappa [R,M], which may be infinite. Cost: O(log N) a number.
TiltPoint evaluate(const Tilts& tilts, const at::Tensor& kappa);
/// The point at share `part` in [0, 1] of the way between two points. A share 0 of an infinite h is
/// 0.
TiltPoint mix(const at::Tensor& part, const TiltPoint& from, const TiltPoint& to);

/// One function at one number on the CPU, bit-equal to the tensor version, without allocation.
struct TiltNumber {
  double h, w;
};
TiltNumber evaluate(const Tilts& tilts, int64_t row, double kappa);
TiltNumber mix(double part, const TiltNumber& from, const TiltNumber& to);

}  // namespace crais
