// Vectors of numbers, as wide as the registers of the instruction set that is compiled for.
// Everything has internal linkage: the linker must never use code of one instruction set for
// another. For the same reason, this file includes only the standard headers of integers and of the
// processor.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(CRAIS_SIMD_BYTES)  // tests ask for wider vectors than the processor has
#elif defined(__AVX512F__)
#define CRAIS_SIMD_BYTES 64
#elif defined(__AVX2__)
#define CRAIS_SIMD_BYTES 32
#else
#define CRAIS_SIMD_BYTES 16
#endif

namespace crais {
namespace {

using Floats = float __attribute__((vector_size(CRAIS_SIMD_BYTES), may_alias));
using Ints = int32_t __attribute__((vector_size(CRAIS_SIMD_BYTES), may_alias));
using Words = uint32_t __attribute__((vector_size(CRAIS_SIMD_BYTES), may_alias));
using Doubles = double __attribute__((vector_size(CRAIS_SIMD_BYTES), may_alias));
using LongWords = uint64_t __attribute__((vector_size(CRAIS_SIMD_BYTES), may_alias));

constexpr int kWords = CRAIS_SIMD_BYTES / 4;
constexpr int kLongWords = CRAIS_SIMD_BYTES / 8;

inline Floats sqrt(Floats x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__) && CRAIS_SIMD_BYTES == 32
  return reinterpret_cast<Floats>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#elif defined(__SSE2__) && CRAIS_SIMD_BYTES == 16
  return reinterpret_cast<Floats>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#else
  for (int i = 0; i < kWords; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

/// a b + c, rounded once if the instruction set has a fused multiply-add.
inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__FMA__) && defined(__AVX2__) && CRAIS_SIMD_BYTES == 32
  return reinterpret_cast<Floats>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}

/// The polynomial c[0] + c[1] x + c[2] x^2 + ...
template <int N>
inline Floats polynomial(Floats x, const float (&c)[N]) {
  Floats sum = x * c[N - 1] + c[N - 2];
#pragma GCC unroll 8
  for (int i = N - 3; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

}  // namespace
}  // namespace crais
