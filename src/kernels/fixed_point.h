// Numbers in fixed point and their products.
#pragma once

#include "kernels/instructions.h"
#include "kernels/products.h"

namespace crais {
namespace {

/// The largest absolute value among the `count` numbers of each lane, `stride` vectors apart. NaN
/// counts as the largest.
inline Vec largest(const Vec* x, int64_t count, int64_t stride) {
  constexpr float kLeast = 1e-30F;
  IntVec found = bits(splat(kLeast));
  for (int64_t i = 0; i < count; ++i) {
    const IntVec size = bits(x[i * stride]) & ~kSignBit;
    found = size > found ? size : found;
  }
  return from_bits(found);
}

/// Conversion of the numbers of a lane to fixed point.
struct FixedPoint {
  /// A number of size `largest` has `most` steps. If `largest` is not finite, the step is not
  /// finite.
  FixedPoint(Vec largest, int most)
      : step(largest * (1.0F / static_cast<float>(most))),
        per_step(static_cast<float>(most) / largest) {}

  IntVec steps(Vec x) const { return nearest(x * per_step); }
  Vec rest(Vec x) const { return x - step * __builtin_convertvector(steps(x), Vec); }

  Vec step, per_step;
};

/// The number of groups of `size` for `units` units; the last group is filled up.
inline int64_t grouped(int64_t units, int64_t size) { return (units + size - 1) / size; }

/// The register tile of integer sums.
template <int N>
struct IntSums {
  IntVec of[kPanelRows][N];

  /// of[i] += w[i] . x, in pairs; in fours of which x is unsigned; in fours of which w is.
  [[gnu::always_inline]] void add_pairs(const uint32_t* w, const IntVec* x) {
    each_sum<N>([&](int i, int v) { dot_pairs(of[i][v], x[v], weight(w, i)); });
  }
  [[gnu::always_inline]] void add_fours(const uint32_t* w, const IntVec* x) {
    each_sum<N>([&](int i, int v) { dot_fours(of[i][v], x[v], weight(w, i)); });
  }
  [[gnu::always_inline]] void add_fours_of_weights(const uint32_t* w, const IntVec* x) {
    each_sum<N>([&](int i, int v) { dot_fours(of[i][v], weight(w, i), x[v]); });
  }

  [[gnu::always_inline]] void start(const IntVec* with) {
    each_sum<N>([&](int i, int v) { of[i][v] = with[v]; });
  }
  [[gnu::always_inline]] void start(const int32_t* with) {
    each_sum<N>([&](int i, int v) { of[i][v] = splat(with[i]); });
  }
  [[gnu::always_inline]] void divide_low() {
    each_sum<N>([&](int i, int v) { of[i][v] >>= kLowShift; });
  }
  // The addend is loaded before the product: a sanitizer check between load and product would
  // prevent the compiler from fusing some lanes.

  /// x[i] = unit[i] step of[i] + bias[i].
  [[gnu::always_inline]] void store(const float* unit, const Vec* step, const float* bias,
                                    Vec* x) const {
    each_sum<N>([&](int i, int v) {
      const Vec start = splat(bias[i]);
      x[i * N + v] = number(i, v) * (splat(unit[i]) * step[v]) + start;
    });
  }
  /// x[i] += unit[i] step of[i].
  [[gnu::always_inline]] void add_to(const float* unit, const Vec* step, Vec* x) const {
    each_sum<N>([&](int i, int v) {
      const Vec before = x[i * N + v];
      x[i * N + v] = number(i, v) * (splat(unit[i]) * step[v]) + before;
    });
  }
  /// x[i] = unit[i] step of[i], for the first `rows` rows. (By each_sum, with this many captures,
  /// GCC 12 keeps the sums in memory.)
  [[gnu::always_inline]] void store(const float* unit, const Vec* step, Vec* x,
                                    int64_t rows) const {
#pragma GCC unroll 16
    for (int i = 0; i < kPanelRows; ++i) {
      if (i >= rows) break;
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) x[i * N + v] = number(i, v) * (splat(unit[i]) * step[v]);
    }
  }

 private:
  static IntVec weight(const uint32_t* w, int i) { return splat(static_cast<int>(w[i])); }
  Vec number(int i, int v) const { return __builtin_convertvector(of[i][v], Vec); }
};

}  // namespace
}  // namespace crais
