// What is between the matrix products: activations, and the pixels' likelihood after the last.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

template <class Function>
inline void for_each(Vec* h, int64_t count, Function function) {
  for (int64_t i = 0; i < count; ++i) h[i] = function(i, h[i]);
}

void activate(Activation activation, Vec* x, int64_t count) {
  switch (activation) {
    case Activation::kTanh:
      return for_each(x, count, [](int64_t, Vec a) { return tanh(a); });
    case Activation::kElu:
      return for_each(x, count, [](int64_t, Vec a) { return elu(a); });
    case Activation::kRelu:
      return for_each(x, count, [](int64_t, Vec a) { return relu(a); });
    case Activation::kSoftplus:
      return for_each(x, count, [](int64_t, Vec a) { return softplus(a); });
  }
}

/// The activation's output h becomes g times its slope there.
void back_through(Activation activation, const Vec* g, Vec* h, int64_t count) {
  const Vec one = splat(1.0F), zero = {};
  switch (activation) {
    case Activation::kTanh:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (1 - a * a); });
    case Activation::kElu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : a + 1); });
    case Activation::kRelu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : zero); });
    case Activation::kSoftplus:
      return for_each(h, count, [=](int64_t i, Vec a) { return -g[i] * scaled_exp(-a).expm1(); });
  }
}

/// One column of lanes of a group's logits l. Returns sum_j log p(x_j | l_j); for a gradient,
/// x_j - sigmoid(l_j) replaces l_j.
///
/// log p = x l - max(l, 0) - log(1 + exp(-|l|)), whose terms do not cancel each other; the
/// logarithms are taken as one of a product.
template <bool kGradient>
Vec bernoulli(const Vec* x, Vec* logits, int64_t stride, int64_t count) {
  Vec product = splat(1.0F), sum = {};
  for (int64_t j = 0; j < count; ++j, logits += stride) {
    const Vec l = *logits, e = scaled_exp(minus_abs(l)).exp();
    product *= 1 + e;
    sum += x[j] * l - (l > 0 ? l : Vec{});
    if (kGradient) *logits = x[j] - (l > 0 ? splat(1.0F) : e) / (1 + e);
  }
  return sum - log(product);  // a NaN among the logits is in the sum
}

}  // namespace
}  // namespace crais
