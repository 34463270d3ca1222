// The way back through a layer in fixed point: 13 bits of the slopes, 13 or more of the weights,
// exact sums in int32.
#pragma once

#include "kernels/fixed_point.h"
#include "kernels/pointwise.h"

namespace crais {
namespace {

inline int64_t back_workspace(int64_t outputs) {
  return kTileVectors * kLanes * padded(outputs) / 2;
}

using Quotient = RoughQuotient;  // of forces

/// out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count), both rounded;
/// `in` has zeros up to the end of its last panel.
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out,
                   Vec* workspace) {
  const int64_t pairs = grouped(count, 2);
  auto* const rounded = reinterpret_cast<IntVec*>(workspace);
  Vec step[N];
  for (int v = 0; v < N; ++v) {
    const FixedPoint lane(in + v, count, N);
    step[v] = lane.step;
    for (int64_t q = 0; q < pairs; ++q)
      rounded[q * N + v] =
          paired(lane.steps(in[2 * q * N + v]), lane.steps(in[(2 * q + 1) * N + v]));
  }
  const uint32_t* w = layer.pairs + first / 2 * kPanelRows;
  const float* unit = layer.unit_of_pairs;
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    IntSums<N> sums;
    sums.clear();
    for (int64_t q = 0; q < pairs; ++q)
      sums.template add<Pairs>(w + q * kPanelRows, rounded + q * N);
    sums.add_to(unit, step, out);
    w += padded(layer.outputs) / 2 * kPanelRows;
    unit += kPanelRows;
    out += kPanelRows * N;
  }
}

}  // namespace
}  // namespace crais
