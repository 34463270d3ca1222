// Numbers in bfloat16, on processors that have them.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/simd.h"

namespace crais {
namespace {

using HalfVec = uint16_t __attribute__((vector_size(32), may_alias));

/// To the nearest bfloat16, ties to even; subnormal numbers become 0.
inline HalfVec rounded(Vec x) {
  return reinterpret_cast<HalfVec>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x)));
}

inline IntVec widened_bits(HalfVec x) { return __builtin_convertvector(x, IntVec); }
inline Vec widened(HalfVec x) { return from_bits(widened_bits(x) << 16); }

}  // namespace
}  // namespace crais
