// Functions of vectors of floats that a decoder needs.
#pragma once

#include "simd/vectors.h"

namespace crais {
namespace {

using Vec = Floats;
using IntVec = Ints;
constexpr int kLanes = kWords;

inline Vec splat(float x) { return x - Vec{}; }
inline IntVec splat(int x) { return x + IntVec{}; }
inline IntVec bits(Vec x) { return reinterpret_cast<IntVec>(x); }
inline Vec from_bits(IntVec x) { return reinterpret_cast<Vec>(x); }

/// The lane numbers 0, 1, ...
inline IntVec lane_numbers() {
  IntVec lanes = {};
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return lanes;
}

constexpr int kSignBit = -0x7fffffff - 1;
constexpr int kOneBits = 0x3f800000;
constexpr int kMantissa = 0x007fffff;

inline Vec minus_abs(Vec x) { return from_bits(bits(x) | kSignBit); }

/// 1 / x to at least 2^-14. (GCC 12 warns about undefined lanes in the instruction's plain form.)
inline Vec rough_reciprocal(Vec x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec>(_mm512_maskz_rcp14_ps(0xffff, reinterpret_cast<__m512>(x)));
#else
  return 1 / x;
#endif
}

/// a / b for b in [1, 8], to 1e-7. A division of 16 floats would take as long as 16
/// multiplications.
inline Vec quotient(Vec a, Vec b) {
#if defined(__AVX512F__)
  const Vec rough = rough_reciprocal(b);
  return a * (rough * (2 - b * rough));
#else
  return a / b;
#endif
}

/// exp(y) = scale (1 + tail) with scale a power of two and |tail| < 0.42.
struct ScaledExp {
  Vec scale, tail;

  Vec exp() const { return scale * tail + scale; }
  Vec expm1() const { return scale * tail + (scale - 1); }  // no cancellation: scale is 1 near 0
};

/// The exponential of y <= 0, to 1e-7; at least exp(-87). NaN stays NaN.
inline ScaledExp scaled_exp(Vec y) {
  constexpr float kLeast = -87.0F, kLog2E = 1.44269504F;
  constexpr float kRound = 0x1.8p23F;  // adding it removes the fraction
  // (2^r - 1) / r on [-1/2, 1/2] by interpolation at Chebyshev nodes, to 1.3e-8.
  constexpr float kExp2[] = {0.693147188F,   0.240226508F,   0.0555035711F,
                             0.00961808256F, 0.00133908634F, 0.000154531629F};
  y = y < kLeast ? splat(kLeast) : y;
  const Vec t = y * kLog2E;
  const Vec shifted = t + kRound;
  const Vec r = t - (shifted - kRound);
  return {from_bits((bits(shifted) << 23) + kOneBits), r * polynomial(r, kExp2)};
}

/// log((1 + s) / (1 - s)) for |s| <= 1/3, to 1e-8: the series of 2 atanh(s).
inline Vec twice_atanh(Vec s) {
  constexpr float kSeries[] = {2.0F, 2.0F / 3, 2.0F / 5, 2.0F / 7, 2.0F / 9, 2.0F / 11, 2.0F / 13};
  return s * polynomial(s * s, kSeries);
}

/// The logarithm of a normal number; meaningless for NaN.
inline Vec log(Vec x) {
  constexpr float kLn2 = 0.693147181F;
  const Vec mantissa = from_bits((bits(x) & kMantissa) | kOneBits);  // [1, 2)
  const Vec exponent = __builtin_convertvector((bits(x) >> 23) - 127, Vec);
  return exponent * kLn2 + twice_atanh(quotient(mantissa - 1, mantissa + 1));
}

inline Vec tanh(Vec x) {
  const Vec m = scaled_exp(2 * minus_abs(x)).expm1();
  return from_bits(bits(quotient(-m, m + 2)) | (bits(x) & kSignBit));
}

inline Vec elu(Vec x) { return x > 0 ? x : scaled_exp(x > 0 ? Vec{} : x).expm1(); }

inline Vec relu(Vec x) { return x < 0 ? Vec{} : x; }  // so that NaN stays NaN

inline Vec softplus(Vec x) {
  const Vec e = scaled_exp(minus_abs(x)).exp();
  return (x > 0 ? x : Vec{}) + twice_atanh(quotient(e, e + 2));
}

/// s = 1 / (1 + exp(-x)) and 1 - s, both without subtraction.
struct Sigmoid {
  explicit Sigmoid(Vec x) {
    const Vec e = scaled_exp(minus_abs(x)).exp(), larger = quotient(splat(1.0F), 1 + e);
    value = x < 0 ? e * larger : larger;
    rest = x < 0 ? larger : e * larger;
  }
  Vec value, rest;
};

/// The standard normal's distribution function, to 1e-7, and its density.
struct Normal {
  explicit Normal(Vec x) {
    // Equation 7.1.26 of Abramowitz & Stegun (1964), for erf(x / sqrt 2).
    constexpr float kRate = 0.3275911F * 0.707106781F;
    constexpr float kTail[] = {0.0F,         0.254829592F,  -0.284496736F,
                               1.421413741F, -1.453152027F, 1.061405429F};
    constexpr float kFar = 20.0F, kInverseRoot2Pi = 0.398942280F;
    const Vec size = from_bits(bits(x) & ~kSignBit), near = size < kFar ? size : splat(kFar);
    const Vec e = scaled_exp(-0.5F * near * near).exp();
    const Vec tail = 0.5F * e * polynomial(quotient(splat(1.0F), 1 + kRate * near), kTail);
    below = x < 0 ? tail : 1 - tail;
    density = kInverseRoot2Pi * e;
  }
  Vec below, density;
};

}  // namespace
}  // namespace crais
