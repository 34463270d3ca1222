// The forward pass through the last layer in fixed point: 13 bits of the inputs, at least 20 bits
// of the weights, exact sums in int32.
//
// Products of 16-bit pairs are 2 times as fast as float32, products of 8-bit fours 4 times. A
// weight has a high part, which multiplies 16-bit inputs, and a low part, which multiplies the
// leading 8 bits of the inputs. The effect of the rounding of inputs on the value is known once the
// gradient is known: see `missed`. A second-order error of 1e-5 nats remains if the outputs are
// logits, whose log-density has a curvature of at most 1/4. Normal pixels with little noise have a
// larger curvature and stay in float32. Hidden layers stay in float32 too: their units may have
// kinks.
#pragma once

#include "kernels/fixed_point.h"

namespace crais {
namespace {

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
        pairs[(2 * q + i) * vectors + v] = paired(of[2 * i], of[2 * i + 1]);
      fours[q * vectors + v] = bytes;
    }
  }
};

/// Floats of workspace for `inputs` inputs.
inline int64_t outputs_workspace(int64_t inputs) {
  return kTileVectors * kLanes * (1 + 3 * grouped(inputs, 4));
}

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
      sums.template add<Fours>(low + q * kPanelRows, in.fours + q * N);
    sums.divide_low();
    for (int64_t q = 0; q < grouped(layer.inputs, 2); ++q)
      sums.template add<Pairs>(high + q * kPanelRows, in.pairs + q * N);
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

}  // namespace
}  // namespace crais
