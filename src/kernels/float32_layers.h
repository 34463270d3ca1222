// The forward pass through the last layer and the backward passes, in float32.
#pragma once

#include "kernels/gather.h"
#include "kernels/products.h"

namespace crais {
namespace {

/// A quotient for forces.
inline Vec force_quotient(Vec a, Vec b) { return quotient(a, b); }

/// Floats of workspace for the inputs of the last layer, and for a backward pass.
inline int64_t outputs_workspace(int64_t /*inputs*/) { return 0; }
inline int64_t back_workspace(int64_t /*outputs*/) { return 0; }

/// Inputs of the last layer in the form of `multiply_outputs`: unchanged.
struct OutputInputs {
  OutputInputs(const PackedLayer& /*layer*/, const Vec* x, int64_t /*vectors*/, Vec* /*workspace*/)
      : units(x) {}
  const Vec* units;
};

/// Computes outputs [first, first + count), in the form of `multiply`.
template <int N>
void multiply_outputs(const PackedLayer& layer, int64_t first, int64_t count,
                      const OutputInputs& in, Vec* out) {
  multiply<N>(layer, first, count, in.units, out);
}

/// False: inputs are not rounded, so the gradient need not correct the value.
inline bool outputs_round(const PackedLayer& /*layer*/) { return false; }
inline Vec missed(const PackedLayer& /*layer*/, const Vec* /*units*/, const Vec* /*grad*/,
                  int64_t /*vectors*/) {
  return Vec{};
}

/// out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count).
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out,
                   Vec* /*workspace*/) {
  const int64_t stride = padded(layer.inputs) * kPanelRows;
  const float* w = layer.weight + first * padded(layer.inputs);
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    Sums<N> sums;
    sums.load(out);
    const float* block = w;  // kPanelRows x kPanelRows of W
    const Vec* x = in;
    for (int64_t rest = count; rest > 0; rest -= kPanelRows, block += stride) {
      const int64_t rows = rest < kPanelRows ? rest : kPanelRows;
      for (int64_t j = 0; j < rows; ++j, x += N) sums.template add<kPanelRows>(block + j, x);
    }
    sums.store(out);
    w += kPanelRows * kPanelRows;
    out += kPanelRows * N;
  }
}

/// multiply_back for all outputs of a convolution; overwrites out [inputs][N].
template <int N>
void gather_back(const PackedLayer& layer, const Vec* in, Vec* out, Vec* /*workspace*/) {
  gather<N>(layer.gather_back, nullptr, in, out);
}

}  // namespace
}  // namespace crais
