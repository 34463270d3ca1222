// What a core does at most: multiply-adds in registers, nothing loaded or stored.
#pragma once

#include "kernels/simd.h"

namespace crais {
namespace {

/// As many independent sums as the register tile has, enough to hide the latency of two units.
/// Returns the floating-point operations done.
double multiply_adds(int64_t rounds) {
  constexpr int kSums = kPanelRows * kTileVectors;
  volatile float start = 0.5F;  // so that the compiler cannot know the result
  const Vec a = splat(start), b = splat(start);
  Vec sum[kSums];
  for (Vec& s : sum) s = a;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 32
    for (int j = 0; j < kSums; ++j) sum[j] = sum[j] * a + b;
  }
  Vec total = {};
  for (const Vec& s : sum) total += s;
  start = total[0];
  return 2.0 * kSums * kLanes * static_cast<double>(rounds);
}

}  // namespace
}  // namespace crais
