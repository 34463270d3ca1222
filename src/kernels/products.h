// The matrix product of a layer for a tile of particles, [unit][lane]. The source file defines
// kPanelRows and kTileVectors to fit the registers.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

inline int64_t panels(int64_t units) { return (units + kPanelRows - 1) / kPanelRows; }
inline int64_t padded(int64_t units) { return panels(units) * kPanelRows; }

/// Calls use(i, v) for each sum in the first `rows` rows of a register tile. The loops must vanish:
/// sums whose index is not a constant would lie in memory.
template <int N, class Use>
[[gnu::always_inline]] inline void each_sum(Use use, int64_t rows = kPanelRows) {
#pragma GCC unroll 16
  for (int i = 0; i < kPanelRows; ++i) {
    if (i >= rows) break;
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) use(i, v);
  }
}

/// The register tile: kPanelRows sums for each of N vectors of particles.
template <int N>
struct Sums {
  Vec of[kPanelRows][N];

  /// of[i] += w[i stride] x.
  template <int kStride>
  [[gnu::always_inline]] void add(const float* w, const Vec* x) {
    each_sum<N>([&](int i, int v) { of[i][v] += splat(w[i * kStride]) * x[v]; });
  }
  /// of[i] += w x[shift[i]].
  [[gnu::always_inline]] void add_places(float w, const Vec* x,
                                         const int64_t (&shift)[kPanelRows]) {
    each_sum<N>([&](int i, int v) { of[i][v] += splat(w) * x[shift[i] + v]; });
  }
  [[gnu::always_inline]] void start(float bias) {
    each_sum<N>([&](int i, int v) { of[i][v] = splat(bias); });
  }
  [[gnu::always_inline]] void start(const float* bias) {
    each_sum<N>([&](int i, int v) { of[i][v] = splat(bias[i]); });
  }
  [[gnu::always_inline]] void load(const Vec* x) {
    each_sum<N>([&](int i, int v) { of[i][v] = x[i * N + v]; });
  }
  /// Stores the first `rows` rows.
  [[gnu::always_inline]] void store(Vec* x, int64_t rows = kPanelRows) const {
    each_sum<N>([&](int i, int v) { x[i * N + v] = of[i][v]; }, rows);
  }
};

/// Computes outputs [first, first + count) of a layer, `first` at the start of a panel, and zeros
/// up to the end of the last panel: out [count][N] = W in [inputs][N] + bias.
template <int N>
void multiply(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out) {
  const float* w = layer.weight + first * padded(layer.inputs);
  const float* bias = layer.bias + first;
  for (int64_t panel = panels(count); panel > 0; --panel) {
    Sums<N> sums;
    sums.start(bias);
    for (int64_t k = 0; k < layer.inputs; ++k) sums.template add<1>(w + k * kPanelRows, in + k * N);
    sums.store(out);
    w += padded(layer.inputs) * kPanelRows;
    bias += kPanelRows;
    out += kPanelRows * N;
  }
}

using Product = void (*)(const PackedLayer&, int64_t first, int64_t count, const Vec* in, Vec* out);
constexpr Product kMultiply[] = {nullptr, multiply<1>, multiply<2>, multiply<3>};
static_assert(kTileVectors <= 3);

}  // namespace
}  // namespace crais
