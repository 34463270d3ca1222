// The backward pass through a layer in fixed point: 8 bits of slopes and weights, exact sums in
// int32.
#pragma once

#include "kernels/fixed_point.h"
#include "kernels/gather.h"
#include "kernels/pointwise.h"

namespace crais {
namespace {

/// Floats of workspace: each group of four outputs has its bytes and the sum of all groups before
/// it.
inline int64_t back_workspace(int64_t outputs) {
  return kTileVectors * kLanes * (2 * grouped(outputs, 4) + 1);
}

using Quotient = RoughQuotient;  // for forces

/// The slopes [4 fours][N] of a layer's outputs as bytes. Each lane has a unit of its own.
template <int N>
struct ByteSlopes {
  ByteSlopes(const Vec* in, int64_t fours, Vec* workspace)
      : bytes(reinterpret_cast<IntVec*>(workspace)), before(bytes + fours * N) {
    for (int v = 0; v < N; ++v) {
      const FixedPoint lane(largest(in + v, 4 * fours, N, Fours::kSumsOfTwo), kByteSteps);
      step[v] = lane.step;
      IntVec sum = {};
      for (int64_t q = 0; q < fours; ++q) {
        before[q * N + v] = sum;
        IntVec four = {};
        for (int64_t i = 0; i < 4; ++i) {
          const IntVec steps = lane.steps(in[(4 * q + i) * N + v]);
          four |= (steps & 0xff) << (8 * i);
          sum += steps;
        }
        bytes[q * N + v] = four;
      }
      before[fours * N + v] = sum;
    }
  }

  /// Subtracts the contribution of the weights' offset from the sums of products.
  void take_offset(IntVec (&sums)[N], int64_t first, int64_t fours) const {
    for (int v = 0; v < N; ++v)
      sums[v] -= kByteOffset * (before[(first + fours) * N + v] - before[first * N + v]);
  }

  Vec step[N];
  IntVec* const bytes;   // [fours][N]
  IntVec* const before;  // [fours + 1][N]: sums of slopes, in steps
};

/// out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count), both rounded.
/// `in` has zeros up to the end of its last panel.
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out,
                   Vec* workspace) {
  const int64_t fours = grouped(count, 4);
  const ByteSlopes<N> slopes(in, fours, workspace);
  IntVec start[N] = {};
  slopes.take_offset(start, 0, fours);
  const uint32_t* w = layer.back_fours + first / 4 * kPanelRows;
  const float* unit = layer.back_unit;
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    IntSums<N> sums;
    sums.start(start);
    for (int64_t q = 0; q < fours; ++q)
      sums.template add<FoursOfWeights>(w + q * kPanelRows, slopes.bytes + q * N);
    sums.add_to(unit, slopes.step, out);
    w += padded(layer.outputs) / 4 * kPanelRows;
    unit += kPanelRows;
    out += kPanelRows * N;
  }
}

/// multiply_back for all outputs of a convolution; overwrites out [inputs][N]. In float32 if the
/// number of channels is not a multiple of four.
template <int N>
void gather_back(const PackedLayer& layer, const Vec* in, Vec* out, Vec* workspace) {
  const PackedGather& g = layer.gather_back;
  if (g.fours == nullptr) return gather<N>(g, nullptr, in, out);
  const ByteSlopes<N> slopes(in, layer.outputs / 4, workspace);
  for (int64_t t = 0; t < g.num_tiles; ++t) {
    const GatherTile& tile = g.tiles[t];
    const GatherRun* const runs = g.runs + tile.first_run;
    const uint32_t* const w = g.fours + tile.panel * (g.columns / 4) * kPanelRows;
    IntVec start[N] = {};
    for (int32_t r = 0; r < tile.num_runs; ++r)
      slopes.take_offset(start, runs[r].input / 4, runs[r].count / 4);
    IntSums<N> sums;
    sums.start(start);
    for (int32_t r = 0; r < tile.num_runs; ++r) {
      const uint32_t* const weight = w + int64_t{runs[r].weight / 4} * kPanelRows;
      const IntVec* const x = slopes.bytes + int64_t{runs[r].input / 4} * N;
      for (int64_t q = 0; q < runs[r].count / 4; ++q)
        sums.template add<FoursOfWeights>(weight + q * kPanelRows, x + q * N);
    }
    sums.store(g.unit + tile.panel * kPanelRows, slopes.step, out + int64_t{tile.output} * N,
               tile.rows);
  }
}

}  // namespace
}  // namespace crais
