// Numbers in fixed point and their products.
#pragma once

#include "kernels/instructions.h"
#include "kernels/products.h"

namespace crais {
namespace {

/// The largest absolute value among the `count` numbers of each lane, `stride` vectors apart; with
/// `sums`, also among the sums of two neighbours. NaN counts as the largest.
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

/// The pairs of int16 in each lane, from two rows of lanes.
inline IntVec paired(IntVec even, IntVec odd) { return (even & 0xffff) | (odd << 16); }

/// The number of groups of `size` for `units` units; the last group is filled up.
inline int64_t grouped(int64_t units, int64_t size) { return (units + size - 1) / size; }

/// Products of fours with unsigned weights.
struct FoursOfWeights {
  [[gnu::always_inline]] static void add(IntVec& sum, const IntVec& x, IntVec w) {
    Fours::add(sum, w, x);
  }
};

/// The register tile of integer sums.
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
  // The addend is loaded before the product: a sanitizer check between load and product would
  // prevent the compiler from fusing some lanes.

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
  /// x[i] = unit[i] step of[i], for the first `rows` rows.
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
