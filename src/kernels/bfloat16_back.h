// The way back through a layer, in bfloat16: dot products of pairs, summed in float32.
#pragma once

#include <immintrin.h>

#include "kernels/bfloat16.h"
#include "kernels/pointwise.h"
#include "kernels/products.h"

namespace crais {
namespace {

inline int64_t back_workspace(int64_t outputs) {
  return kTileVectors * kLanes * padded(outputs) / 2;
}

using Quotient = RoughQuotient;  // of forces

/// Of two rows of lanes, each lane's pair.
inline Vec paired(Vec even, Vec odd) {
  return from_bits(widened_bits(rounded(even)) | bits(widened(rounded(odd))));
}

/// out [inputs][N] += W^T in, for in [count][N] of outputs [first, first + count), both rounded;
/// `in` has zeros up to the end of its last panel.
template <int N>
void multiply_back(const PackedLayer& layer, int64_t first, int64_t count, const Vec* in, Vec* out,
                   Vec* workspace) {
  const int64_t pairs = (count + 1) / 2;
  for (int64_t q = 0; q < pairs; ++q)
    for (int v = 0; v < N; ++v)
      workspace[q * N + v] = paired(in[2 * q * N + v], in[(2 * q + 1) * N + v]);
  const uint32_t* w = layer.pairs + first / 2 * kPanelRows;
  for (int64_t panel = panels(layer.inputs); panel > 0; --panel) {
    Sums<N> sums;
    sums.load(out);
    for (int64_t q = 0; q < pairs; ++q) {
      const auto* const x = reinterpret_cast<const __m512bh*>(workspace + q * N);
#pragma GCC unroll 16
      for (int i = 0; i < kPanelRows; ++i) {
        const auto weights =
            reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(w[q * kPanelRows + i])));
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v)
          sums.of[i][v] = reinterpret_cast<Vec>(
              _mm512_dpbf16_ps(reinterpret_cast<__m512>(sums.of[i][v]), weights, x[v]));
      }
    }
    sums.store(out);
    w += padded(layer.outputs) / 2 * kPanelRows;
    out += kPanelRows * N;
  }
}

}  // namespace
}  // namespace crais
