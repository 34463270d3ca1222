// Numbers in fixed point and their products.
#pragma once

#include "kernels/instructions.h"
#include "kernels/products.h"

namespace crais {
namespace {

/// The size of the largest of a lane's `count` numbers, `stride` vectors apart, or of the largest
/// sum of two neighbours, where `sums` are asked for and it is larger. NaN is larger than any.
inline Vec largest(const Vec* x, int64_t count, int64_t stride, bool sums = false) {
  constexpr float kLeast = 1e-30F;
  IntVec found = bits(splat(kLeast));
  const auto see = [&](Vec number) {
    const IntVec size = bits(number) & ~kSignBit;
    found = size > found ? size : found;
  };
  for (int64_t i = 0; i < count; ++i) {
    see(x[i * stride]);
    if (sums && i % 2 == 1) see(x[(i - 1) * stride] + x[i * stride]);
  }
  return from_bits(found);
}

/// The numbers of a lane in fixed point.
struct FixedPoint {
  /// A number of size `largest` has `most` steps. Where it is not finite, no step is.
  FixedPoint(Vec largest, int most)
      : step(largest * (1.0F / static_cast<float>(most))),
        per_step(static_cast<float>(most) / largest) {}

  IntVec steps(Vec x) const { return nearest(x * per_step); }
  Vec rest(Vec x) const { return x - step * __builtin_convertvector(steps(x), Vec); }

  Vec step, per_step;
};

/// Of two rows of lanes, each lane's pair of int16.
inline IntVec paired(IntVec even, IntVec odd) { return (even & 0xffff) | (odd << 16); }

/// Groups of `size` that so many units make, the last one filled.
inline int64_t grouped(int64_t units, int64_t size) { return (units + size - 1) / size; }

/// Fours where the weights are without a sign.
struct FoursOfWeights {
  [[gnu::always_inline]] static void add(IntVec& sum, const IntVec& x, IntVec w) {
    Fours::add(sum, w, x);
  }
};

/// The register tile, of integers.
template <int N>
struct IntSums {
  IntVec of[kPanelRows][N];

  /// of[i] += w[i] . x
  template <class Products>
  [[gnu::always_inline]] void add(const uint32_t* w, const IntVec* x) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      const IntVec weights = splat(static_cast<int>(w[i]));
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) Products::add(of[i][v], x[v], weights);
    }
  }

  [[gnu::always_inline]] void start(const IntVec* with) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = with[v];
  }
  [[gnu::always_inline]] void start(const int32_t* with) {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] = splat(with[i]);
  }
  [[gnu::always_inline]] void divide_low() {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) of[i][v] >>= kLowShift;
  }
  // What is added is loaded before the product: a check between the two, of a sanitizer, would keep
  // some lanes from fusing them.

  /// x[i] = unit[i] step of[i] + bias[i].
  [[gnu::always_inline]] void store(const float* unit, const Vec* step, const float* bias,
                                    Vec* x) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      const Vec scale = splat(unit[i]), start = splat(bias[i]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        const Vec factor = scale * step[v];
        x[i * N + v] = __builtin_convertvector(of[i][v], Vec) * factor + start;
      }
    }
  }
  /// x[i] = unit[i] step of[i], for the first `rows`.
  [[gnu::always_inline]] void store(const float* unit, const Vec* step, Vec* x,
                                    int64_t rows) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      if (i >= rows) break;
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v)
        x[i * N + v] = __builtin_convertvector(of[i][v], Vec) * (splat(unit[i]) * step[v]);
    }
  }
  /// x[i] += unit[i] step of[i].
  [[gnu::always_inline]] void add_to(const float* unit, const Vec* step, Vec* x) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      const Vec scale = splat(unit[i]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        const Vec factor = scale * step[v], before = x[i * N + v];
        x[i * N + v] = __builtin_convertvector(of[i][v], Vec) * factor + before;
      }
    }
  }
};

}  // namespace
}  // namespace crais
