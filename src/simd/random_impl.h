// Counter-based random numbers: SplitMix64, and normal numbers by Box and Muller's method.
//                                              [Steele, Lea & Flood 2014; Box & Muller 1958]
//
// Words come in groups of 16, a multiple of every register's width. Two registers of 64-bit lanes
// make two registers of 32-bit lanes: their lower halves and their upper halves, in the order [0,
// 8, 1, 9, ..., 15].
#pragma once

#include "simd/vectors.h"

namespace crais {
namespace {

constexpr int kGroup = 16;  // words of 64 bits
constexpr int kVectors = kGroup / kWords;

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15U;

/// SplitMix64's hash of a counter, for any type of lanes.
template <typename Counter>
[[gnu::always_inline]] inline Counter mixed(Counter x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The first counter of a key. Without the hash, keys that differ only in their upper bits would
/// give similar numbers.
inline uint64_t start_of(uint64_t key) { return mixed(key + kGamma); }

/// Words [first, first + kLongWords) of SplitMix64 from the seed `start`.
[[gnu::always_inline]] inline LongWords words(uint64_t start, uint64_t first) {
  LongWords x = {};
#pragma GCC unroll 8
  for (int i = 0; i < kLongWords; ++i) x[i] = kGamma * static_cast<uint64_t>(i);
  return mixed(x + (start + kGamma * (first + 1)));
}

/// The halves of the v-th words of a group.
struct Halves {
  Words lower, upper;
};

[[gnu::always_inline]] inline Halves halves(uint64_t start, uint64_t group, int v) {
  constexpr uint64_t kLower = 0xffffffff;
  const uint64_t first = group * kGroup + static_cast<uint64_t>(v * kLongWords);
  const LongWords a = words(start, first), b = words(start, first + kGroup / 2);
  return {reinterpret_cast<Words>((a & kLower) | (b << 32)),
          reinterpret_cast<Words>((a >> 32) | (b & ~kLower))};
}

/// -2 log u of the uniform number u in (0, 1] with the upper 31 bits of `bits`; relative error
/// 2e-7.
inline Floats minus_twice_log(Words bits) {
  // -2 log(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)], minimax in the relative error.
  constexpr float kSeries[] = {-1.99999989F,  1.0000073F,   -0.666701179F, 0.499398181F,
                               -0.398003308F, 0.345016592F, -0.324451651F, 0.202137994F};
  constexpr int32_t kRootHalf = 0x3f3504f3, kMantissa = 0x007fffff, kScale = 31 << 23;
  constexpr float kMinusTwiceLn2 = -1.38629436F;
  const Floats k = __builtin_convertvector(reinterpret_cast<Ints>(bits >> 1), Floats) + 0.5F;
  const Ints above = reinterpret_cast<Ints>(k) - (kScale + kRootHalf);  // of u = k 2^-31
  const Floats exponent = __builtin_convertvector(above >> 23, Floats);
  const Floats f = reinterpret_cast<Floats>((above & kMantissa) + kRootHalf) - 1.0F;
  return f * polynomial(f, kSeries) + exponent * kMinusTwiceLn2;
}

/// Two independent normal numbers from two words.
inline void box_muller(Words u, Words v, Floats& first, Floats& second) {
  // sin(pi t / 2) / t and cos(pi t / 2) in t^2 for |t| <= 1, to 5e-8.
  constexpr float kSine[] = {1.57079632F, -0.645963761F, 0.0796899269F, -0.0046741575F,
                             0.000151678532F};
  constexpr float kCosine[] = {0.999999953F, -1.23369821F, 0.253650745F, -0.0208106276F,
                               0.00085819062F};
  const Floats length = sqrt(minus_twice_log(u));
  // The angle covers half a turn; a bit that `length` has not used selects the other half.
  const Floats radius = reinterpret_cast<Floats>(reinterpret_cast<Words>(length) ^ (u << 31));
  const Floats t = __builtin_convertvector(reinterpret_cast<Ints>(v), Floats) * 0x1p-31F;
  const Floats square = t * t;
  first = radius * polynomial(square, kCosine);
  second = radius * (t * polynomial(square, kSine));
}

/// Writes groups of numbers until there are `count`: group(i, out) writes the i-th group of kSize.
template <int kSize, typename Number, typename Group>
[[gnu::always_inline]] inline void in_groups(Number* out, int64_t count, const Group& group) {
  uint64_t i = 0;
  for (; count >= kSize; count -= kSize, out += kSize) group(i++, out);
  if (count == 0) return;
  Number last[kSize];
  group(i, last);
  for (int64_t j = 0; j < count; ++j) out[j] = last[j];
}

template <typename Vector, typename Number>
[[gnu::always_inline]] inline void store(const Vector& x, Number* out) {
  __builtin_memcpy(out, &x, sizeof(x));
}

void normals(uint64_t key, float* out, int64_t count) {
  in_groups<2 * kGroup>(out, count, [start = start_of(key)](uint64_t group, float* to) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Halves bits = halves(start, group, v);
      Floats first, second;
      box_muller(bits.lower, bits.upper, first, second);
      store(first, to + v * kWords);
      store(second, to + kGroup + v * kWords);
    }
  });
}

void uniforms(uint64_t key, float* out, int64_t count) {
  const auto uniform = [](Words bits) {
    return __builtin_convertvector(reinterpret_cast<Ints>(bits >> 8), Floats) * 0x1p-24F;
  };
  in_groups<2 * kGroup>(out, count, [start = start_of(key), uniform](uint64_t group, float* to) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Halves bits = halves(start, group, v);
      store(uniform(bits.lower), to + v * kWords);
      store(uniform(bits.upper), to + kGroup + v * kWords);
    }
  });
}

void wide_uniforms(uint64_t key, double* out, int64_t count) {
  constexpr uint64_t kOne = 0x3ff0000000000000;  // its lower 52 bits are the fraction
  in_groups<kLongWords>(out, count, [start = start_of(key)](uint64_t group, double* to) {
    const LongWords bits = words(start, group * kLongWords);
    store(reinterpret_cast<Doubles>((bits >> 12) | kOne) - 1.0, to);
  });
}

}  // namespace
}  // namespace crais
