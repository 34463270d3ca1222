// The way back through a layer in fixed point: 8 bits of the slopes and of the weights, exact sums
// in int32.
#pragma once

#include "kernels/fixed_point.h"
#include "kernels/pointwise.h"

namespace crais {
namespace {

inline int64_t back_workspace(int64_t outputs) {
  return kTileVectors * kLanes * grouped(outputs, 4);
}

using Quotient = RoughQuotient;  // of forces

/// out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count), both rounded;
/// `in` has zeros up to the end of its last panel.
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out,
                   Vec* workspace) {
  const int64_t fours = grouped(count, 4);
  auto* const rounded = reinterpret_cast<IntVec*>(workspace);
  Vec step[N];
  IntVec start[N];  // takes the offset of weights back
  for (int v = 0; v < N; ++v) {
    const FixedPoint lane(largest(in + v, 4 * fours, N, Fours::kSumsOfTwo), kByteSteps);
    step[v] = lane.step;
    IntVec sum = {};
    for (int64_t q = 0; q < fours; ++q) {
      IntVec bytes = {};
      for (int64_t i = 0; i < 4; ++i) {
        const IntVec steps = lane.steps(in[(4 * q + i) * N + v]);
        bytes |= (steps & 0xff) << (8 * i);
        sum += steps;
      }
      rounded[q * N + v] = bytes;
    }
    start[v] = -kByteOffset * sum;
  }
  const uint32_t* w = layer.back_fours + first / 4 * kPanelRows;
  const float* unit = layer.back_unit;
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    IntSums<N> sums;
    sums.start(start);
    for (int64_t q = 0; q < fours; ++q)
      sums.template add<FoursOfWeights>(w + q * kPanelRows, rounded + q * N);
    sums.add_to(unit, step, out);
    w += padded(layer.outputs) / 4 * kPanelRows;
    unit += kPanelRows;
    out += kPanelRows * N;
  }
}

}  // namespace
}  // namespace crais
