/// @file
/// Rising functions of one number, many at once, as tables.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// R functions h(kappa) with slopes w in [0, 1]: cubic Hermite between nodes, linear beyond them.
/// Continuous with its derivative; both h and kappa - h rise everywhere.
struct Tilts {
  at::Tensor kappa;  // [R,N] float64, nodes, ascending
  at::Tensor h;      // [R,N], values there
  at::Tensor w;      // [R,N], slopes there

  /// h = 0 on nodes from low to high, [R] each.
  static Tilts flat(const at::Tensor& low, const at::Tensor& high, int64_t nodes);
  /// Through values h with slopes w at nodes; slopes too steep for the values next to them are cut.
  static Tilts through(const at::Tensor& kappa, const at::Tensor& h, const at::Tensor& w);
};

struct TiltPoint {
  at::Tensor h, w;  // [R,M]
};
/// At kappa [R,M], which may be infinite. Cost: O(log N) a number.
TiltPoint evaluate(const Tilts& tilts, const at::Tensor& kappa);
/// A part in [0, 1] of the way from one to another; a part of 0 of an infinite h is 0.
TiltPoint mix(const at::Tensor& part, const TiltPoint& from, const TiltPoint& to);

/// The same for one number on the CPU, the same bits: nothing is allocated.
struct TiltNumber {
  double h, w;
};
TiltNumber evaluate(const Tilts& tilts, int64_t row, double kappa);
TiltNumber mix(double part, const TiltNumber& from, const TiltNumber& to);

}  // namespace crais
