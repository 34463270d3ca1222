// Weighted sums of places, the same for all channels, and the adjoint; for a tile of particles,
// [unit][lane].
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

void interpolate(const PackedInterpolation& r, const float* bias, int64_t vectors, const Vec* in,
                 Vec* out) {
  const int64_t width = r.channels * vectors;
  for (int64_t place = 0; place < r.places; ++place) {
    Vec* const sums = out + place * width;
    for (int64_t i = 0; i < width; ++i) sums[i] = splat(bias[i / vectors]);
    for (int64_t tap = place * r.taps; tap < (place + 1) * r.taps; ++tap) {
      const Vec* const x = in + r.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) sums[i] += r.weight[tap] * x[i];
    }
  }
}

/// in, the gradient with respect to the inputs, from that of the outputs.
void interpolate_back(const PackedInterpolation& r, int64_t vectors, const Vec* out, Vec* in) {
  const int64_t width = r.channels * vectors;
  for (int64_t i = 0; i < r.input_places * width; ++i) in[i] = Vec{};
  for (int64_t place = 0; place < r.places; ++place) {
    const Vec* const slopes = out + place * width;
    for (int64_t tap = place * r.taps; tap < (place + 1) * r.taps; ++tap) {
      Vec* const x = in + r.inputs[tap] * width;
      for (int64_t i = 0; i < width; ++i) x[i] += r.weight[tap] * slopes[i];
    }
  }
}

}  // namespace
}  // namespace crais
