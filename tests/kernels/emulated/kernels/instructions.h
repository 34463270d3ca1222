// src/kernels/instructions.h by operators, for every processor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/simd.h"

namespace crais {
namespace {

inline Vec load(const float* x, int64_t rest) {
  Vec found = {};
  for (int64_t i = 0; i < std::min<int64_t>(rest, kLanes); ++i) found[i] = x[i];
  return found;
}
inline void store(Vec x, float* to, int64_t rest) {
  for (int64_t i = 0; i < std::min<int64_t>(rest, kLanes); ++i) to[i] = x[i];
}

inline IntVec nearest(Vec x) {
  constexpr float kTooLarge = 0x1p31F, kRound = 0x1.8p23F, kWhole = 0x1p22F;
  const Vec whole = minus_abs(x) > -kWhole ? (x + kRound) - kRound : x;
  const IntVec fits = (whole < kTooLarge) & (whole >= -kTooLarge);  // not NaN
  return fits ? __builtin_convertvector(fits ? whole : Vec{}, IntVec) : splat(kSignBit);
}

using ByteVec = int8_t __attribute__((vector_size(CRAIS_SIMD_BYTES / 4), may_alias));
inline ByteVec low_bytes(IntVec x) { return __builtin_convertvector(x, ByteVec); }

using HalfVec = uint16_t __attribute__((vector_size(CRAIS_SIMD_BYTES / 2), may_alias));
inline HalfVec rounded(Vec x) {
  constexpr int kExponent = 0x7f800000, kQuiet = 0x00400000;
  const IntVec from = bits(x), size = from & ~kSignBit;
  const IntVec number = size <= kMantissa ? from & kSignBit : from + 0x7fff + ((from >> 16) & 1);
  return __builtin_convertvector((size > kExponent ? from | kQuiet : number) >> 16, HalfVec);
}

struct Pairs {
  static void add(IntVec& sum, IntVec x, IntVec w) {
    for (int shift : {0, 16}) sum += ((x << (16 - shift)) >> 16) * ((w << (16 - shift)) >> 16);
  }
};
struct Fours {
  static constexpr bool kSumsOfTwo = false;
  static void add(IntVec& sum, IntVec x, IntVec w) {
    for (int shift : {0, 8, 16, 24}) sum += ((x >> shift) & 0xff) * ((w << (24 - shift)) >> 24);
  }
};

}  // namespace
}  // namespace crais
