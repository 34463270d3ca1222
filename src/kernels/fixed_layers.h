// The forward pass through the last layer and the backward passes, in fixed point with exact sums
// in int32.
//
// Forward: 13 bits of the inputs, at least 20 bits of the weights. Products of 16-bit pairs are 2
// times as fast as float32, products of 8-bit fours 4 times. A weight has a high part, which
// multiplies 16-bit inputs, and a low part, which multiplies the leading 8 bits of the inputs. The
// effect of the rounding of inputs on the value is known once the gradient is known: see `missed`.
// A second-order error of 1e-5 nats remains if the outputs are logits, whose log-density has a
// curvature of at most 1/4. Normal pixels with little noise have a larger curvature and stay in
// float32. Hidden layers stay in float32 too: their units may have kinks.
//
// Backward: 8 bits of slopes and weights.
#pragma once

#include "kernels/fixed_point.h"
#include "kernels/gather.h"

namespace crais {
namespace {

/// A quotient for forces, to 2^-14: they will be rounded.
inline Vec force_quotient(Vec a, Vec b) { return a * rough_reciprocal(b); }

/// Floats of workspace for the inputs of the last layer.
inline int64_t outputs_workspace(int64_t inputs) {
  return kTileVectors * kLanes * (1 + 3 * grouped(inputs, 4));
}
/// Floats of workspace for a backward pass: each group of four outputs has its bytes and the sum of
/// all groups before it.
inline int64_t back_workspace(int64_t outputs) {
  return kTileVectors * kLanes * (2 * grouped(outputs, 4) + 1);
}

/// True if the layer has weights in fixed point. Otherwise it works as in float32.
inline bool outputs_round(const PackedLayer& layer) { return layer.fixed.high != nullptr; }

/// Inputs of the last layer in the form of `multiply_outputs`.
struct OutputInputs {
  OutputInputs(const PackedLayer& layer, const Vec* x, int64_t vectors, Vec* workspace) : units(x) {
    if (!outputs_round(layer)) return;
    step = workspace;
    pairs = reinterpret_cast<IntVec*>(step + vectors);
    fours = pairs + 2 * grouped(layer.inputs, 4) * vectors;
    for (int64_t v = 0; v < vectors; ++v) round(layer.inputs, v, vectors);
  }

  const Vec* units;
  Vec* step = nullptr;      // [N]
  IntVec* pairs = nullptr;  // [inputs / 2, filled][N]
  IntVec* fours = nullptr;  // [inputs / 4, filled][N]

 private:
  void round(int64_t inputs, int64_t v, int64_t vectors) const {
    const FixedPoint lane(largest(units + v, inputs, vectors), kInputSteps);
    step[v] = lane.step;
    for (int64_t q = 0; q < grouped(inputs, 4); ++q) {
      IntVec bytes = {};
      IntVec of[4];
      for (int64_t i = 0; i < 4; ++i) {  // after the last unit, weights are zeros
        of[i] = lane.steps(units[(4 * q + i) * vectors + v]);
        const IntVec coarse = (of[i] + (1 << (kCoarseBits - 1))) >> kCoarseBits;
        bytes |= ((coarse + kCoarseOffset) & 0xff) << (8 * i);
      }
      for (int64_t i = 0; i < 2; ++i)
        pairs[(2 * q + i) * vectors + v] = (of[2 * i] & 0xffff) | (of[2 * i + 1] << 16);
      fours[q * vectors + v] = bytes;
    }
  }
};

/// Computes outputs [first, first + count) of a layer, in the form of `multiply`.
template <int N>
void multiply_outputs(const PackedLayer& layer, int64_t first, int64_t count,
                      const OutputInputs& in, Vec* out) {
  if (!outputs_round(layer)) return multiply<N>(layer, first, count, in.units, out);
  const int64_t width = padded(layer.inputs);
  const uint32_t* high = layer.fixed.high + first * width / 2;
  const uint32_t* low = layer.fixed.low + first * width / 4;
  const int64_t end = first + panels(count) * kPanelRows;
  for (; first < end; first += kPanelRows) {
    IntSums<N> sums;
    sums.start(layer.fixed.start + first);
    for (int64_t q = 0; q < grouped(layer.inputs, 4); ++q)
      sums.add_fours(low + q * kPanelRows, in.fours + q * N);
    sums.divide_low();
    for (int64_t q = 0; q < grouped(layer.inputs, 2); ++q)
      sums.add_pairs(high + q * kPanelRows, in.pairs + q * N);
    sums.store(layer.fixed.unit + first, in.step, layer.bias + first, out);
    high += width / 2 * kPanelRows;
    low += width / 4 * kPanelRows;
    out += kPanelRows * N;
  }
}

/// The change of the value by the rounding of inputs, from the gradient with respect to them.
/// `units` and `grad` are single columns with rows `vectors` apart.
inline Vec missed(const PackedLayer& layer, const Vec* units, const Vec* grad, int64_t vectors) {
  Vec sum = {};
  const FixedPoint lane(largest(units, layer.inputs, vectors), kInputSteps);
  for (int64_t i = 0; i < layer.inputs; ++i)
    sum += lane.rest(units[i * vectors]) * grad[i * vectors];
  return sum;
}

/// The slopes [4 fours][N] of a layer's outputs as bytes. Each lane has a unit of its own.
template <int N>
struct ByteSlopes {
  ByteSlopes(const Vec* in, int64_t fours, Vec* workspace)
      : bytes(reinterpret_cast<IntVec*>(workspace)), before(bytes + fours * N) {
    for (int v = 0; v < N; ++v) {
      const FixedPoint lane(largest(in + v, 4 * fours, N), kByteSteps);
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
      sums.add_fours_of_weights(w + q * kPanelRows, slopes.bytes + q * N);
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
        sums.add_fours_of_weights(weight + q * kPanelRows, x + q * N);
    }
    sums.store(g.unit + tile.panel * kPanelRows, slopes.step, out + int64_t{tile.output} * N,
               tile.rows);
  }
}

}  // namespace
}  // namespace crais
