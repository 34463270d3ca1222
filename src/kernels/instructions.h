// Instructions without operators in the compilers. tests/kernels/emulated has this file in plain
// C++, so that the kernels can be tested on processors without these instructions.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/simd.h"

namespace crais {
namespace {

#if defined(__AVX512F__)
inline __mmask16 lanes(int64_t first) {
  return static_cast<__mmask16>(first >= kLanes ? 0xffff : first > 0 ? (1 << first) - 1 : 0);
}
/// Loads numbers from any address; numbers after the first `rest` are zeros.
inline Vec load(const float* x, int64_t rest) {
  return reinterpret_cast<Vec>(_mm512_maskz_loadu_ps(lanes(rest), x));
}
inline void store(Vec x, float* to, int64_t rest) {
  _mm512_mask_storeu_ps(to, lanes(rest), reinterpret_cast<__m512>(x));
}

using ByteVec = int8_t __attribute__((vector_size(16), may_alias));
inline ByteVec low_bytes(IntVec x) {
  return reinterpret_cast<ByteVec>(
      _mm512_maskz_cvtepi32_epi8(0xffff, reinterpret_cast<__m512i>(x)));
}

#endif

/// The nearest integers, ties to even; the least integer for NaN. (GCC 12 warns about undefined
/// lanes in the plain form of AVX-512's instruction.)
inline IntVec nearest(Vec x) {
#if defined(__AVX512F__)
  return reinterpret_cast<IntVec>(_mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(x)));
#else
  return reinterpret_cast<IntVec>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(x)));
#endif
}

#if defined(__AVX512BF16__)
using HalfVec = uint16_t __attribute__((vector_size(32), may_alias));
/// Rounds to the nearest bfloat16, ties to even. Subnormal numbers become 0.
inline HalfVec rounded(Vec x) {
  return reinterpret_cast<HalfVec>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x)));
}
#endif

/// sum += the dot products of each lane's numbers: pairs of int16, or fours of bytes with `x`
/// unsigned. `kSumsOfTwo`: sums of two products are in 16 bits. (Assembly: GCC 12 copies the sums
/// of the intrinsics, which makes them 1.5 times as slow.)
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#if defined(__AVX512VNNI__)
#define CRAIS_ENCODING ""
#else
#define CRAIS_ENCODING "%{vex%} "
#endif
struct Pairs {
  [[gnu::always_inline]] static void add(IntVec& sum, IntVec x, IntVec w) {
    asm(CRAIS_ENCODING "vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
  }
};
struct Fours {
  static constexpr bool kSumsOfTwo = false;
  [[gnu::always_inline]] static void add(IntVec& sum, IntVec x, IntVec w) {
    asm(CRAIS_ENCODING "vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
  }
};
#undef CRAIS_ENCODING
#elif !defined(__AVX512F__)
/// The dot products by three instructions, the first of which sums two products in 16 bits. Two
/// neighbours in `w` of equal sign must have a sum of at most 128 in size. `w` stays in memory,
/// because the sums use all registers.
struct Fours {
  static constexpr bool kSumsOfTwo = true;
  [[gnu::always_inline]] static void add(IntVec& sum, IntVec x, const IntVec& w) {
    __m256i pairs;
    asm("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "m"(w));
    sum += reinterpret_cast<IntVec>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};
#endif

}  // namespace
}  // namespace crais
