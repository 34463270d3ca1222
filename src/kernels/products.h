// The matrix product of a layer for a tile of particles, [unit][lane]. The source file defines
// kPanelRows and kTileVectors to fit the registers.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

inline int64_t panels(int64_t units) { return (units + kPanelRows - 1) / kPanelRows; }
inline int64_t padded(int64_t units) { return panels(units) * kPanelRows; }

/// The register tile: kPanelRows sums for each of N vectors of particles.
template <int N>
struct Sums {
  Vec of[kPanelRows][N];

  /// of[i] += w[i stride] x.
  template <int kStride>
  [[gnu::always_inline]] void add(const float* w, const Vec* x) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      const Vec weight = splat(w[i * kStride]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] += weight * x[v];
    }
  }

  /// of[i] += w x[shift[i]].
  [[gnu::always_inline]] void add_places(float w, const Vec* x,
                                         const int64_t (&shift)[kPanelRows]) {
    const Vec weight = splat(w);
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] += weight * x[shift[i] + v];
  }

  [[gnu::always_inline]] void start(float bias) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = splat(bias);
  }
  [[gnu::always_inline]] void start(const float* bias) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = splat(bias[i]);
  }
  [[gnu::always_inline]] void load(const Vec* x) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = x[i * N + v];
  }
  [[gnu::always_inline]] void store(Vec* x) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) x[i * N + v] = of[i][v];
  }
  [[gnu::always_inline]] void store_row(int i, Vec* x) const {
    for (int v = 0; v < N; ++v) x[v] = of[i][v];
  }
  /// Stores the first `rows` rows.
  [[gnu::always_inline]] void store(Vec* x, int64_t rows) const {
    if (rows == kPanelRows) return store(x);
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
      if (i < rows) store_row(i, x + i * N);
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
