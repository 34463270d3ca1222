// Instructions without operators in the compilers, and the same by operators. Tests compile the
// latter, so that they try the kernel on processors without these instructions.
#pragma once

#include "kernels/simd.h"

namespace crais {
namespace {

#if defined(__AVX512VNNI__)

/// The nearest integers, ties to even; the least integer for NaN. (GCC 12 warns about undefined
/// lanes in the instruction's plain form.)
inline IntVec nearest(Vec x) {
  return reinterpret_cast<IntVec>(_mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(x)));
}

/// sum += the dot products of each lane's pairs of int16. (Assembly: GCC 12 copies the sums of the
/// intrinsics, which makes them 1.5 times as slow.)
[[gnu::always_inline]] inline void dot_pairs(IntVec& sum, IntVec x, IntVec w) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}
/// sum += the dot products of each lane's fours of bytes: of uint8 with int8.
[[gnu::always_inline]] inline void dot_fours(IntVec& sum, IntVec x, IntVec w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
}

#else

inline IntVec nearest(Vec x) {
  constexpr float kTooLarge = 0x1p31F, kRound = 0x1.8p23F, kWhole = 0x1p22F;
  const Vec whole = minus_abs(x) > -kWhole ? (x + kRound) - kRound : x;
  const IntVec fits = (whole < kTooLarge) & (whole >= -kTooLarge);  // not NaN
  return fits ? __builtin_convertvector(fits ? whole : Vec{}, IntVec) : splat(kSignBit);
}
inline void dot_pairs(IntVec& sum, IntVec x, IntVec w) {
  for (int shift = 0; shift < 32; shift += 16)
    sum += ((x << (16 - shift)) >> 16) * ((w << (16 - shift)) >> 16);
}
inline void dot_fours(IntVec& sum, IntVec x, IntVec w) {
  for (int shift = 0; shift < 32; shift += 8)
    sum += ((x >> shift) & 0xff) * ((w << (24 - shift)) >> 24);
}

#endif

}  // namespace
}  // namespace crais
