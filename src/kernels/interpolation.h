// Weighted sums of places with equal weights for all channels, and their adjoint, for a tile of
// particles, [unit][lane].
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

void interpolate(const PackedInterpolation& map, const float* bias, int64_t vectors, const Vec* in,
                 Vec* out) {
  const int64_t width = map.channels * vectors;
  for (int64_t place = 0; place < map.places; ++place) {
    Vec* const sums = out + place * width;
    for (int64_t i = 0; i < width; ++i) sums[i] = splat(bias[i / vectors]);
    for (int64_t tap = place * map.taps; tap < (place + 1) * map.taps; ++tap) {
      const Vec* const x = in + map.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) sums[i] += map.weight[tap] * x[i];
    }
  }
}

/// Computes `in`, the gradient with respect to the inputs, from that with respect to the outputs.
void interpolate_back(const PackedInterpolation& map, int64_t vectors, const Vec* out, Vec* in) {
  const int64_t width = map.channels * vectors;
  for (int64_t i = 0; i < map.input_places * width; ++i) in[i] = Vec{};
  for (int64_t place = 0; place < map.places; ++place) {
    const Vec* const slopes = out + place * width;
    for (int64_t tap = place * map.taps; tap < (place + 1) * map.taps; ++tap) {
      Vec* const x = in + map.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) x[i] += map.weight[tap] * slopes[i];
    }
  }
}

}  // namespace
}  // namespace crais
