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

}  // namespace crais
