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

constexpr float kSlopeBelow = static_cast<float>(kLeak);  // of the leaky rectifier

void activate(Activation activation, Vec* x, int64_t count) {
  switch (activation) {
    case Activation::kTanh:
      return for_each(x, count, [](int64_t, Vec a) { return tanh(a); });
    case Activation::kElu:
      return for_each(x, count, [](int64_t, Vec a) { return elu(a); });
    case Activation::kRelu:
      return for_each(x, count, [](int64_t, Vec a) { return relu(a); });
    case Activation::kLeakyRelu:
      return for_each(x, count, [](int64_t, Vec a) { return a < 0 ? kSlopeBelow * a : a; });
    case Activation::kSoftplus:
      return for_each(x, count, [](int64_t, Vec a) { return softplus(a); });
  }
}

/// The activation's output h becomes g times its slope there.
void back_through(Activation activation, const Vec* g, Vec* h, int64_t count) {
  const Vec one = splat(1.0F), leak = splat(kSlopeBelow), zero = {};
  switch (activation) {
    case Activation::kTanh:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (1 - a * a); });
    case Activation::kElu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : a + 1); });
    case Activation::kRelu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : zero); });
    case Activation::kLeakyRelu:
      return for_each(h, count, [=](int64_t i, Vec a) { return g[i] * (a > 0 ? one : leak); });
    case Activation::kSoftplus:
      return for_each(h, count, [=](int64_t i, Vec a) { return -g[i] * scaled_exp(-a).expm1(); });
  }
}

struct ExactQuotient {
  static Vec of(Vec a, Vec b) { return quotient(a, b); }
};
/// For numbers that will be rounded: to 2^-14.
struct RoughQuotient {
  static Vec of(Vec a, Vec b) { return a * rough_reciprocal(b); }
};

/// Pixels that a lane has seen at most before `collect`: so many factors 1 + exp(-|l|) <= 2
/// multiply to less than the largest float.
constexpr int64_t kMostPixels = 120;

/// sum_j log p(x_j | l_j) of the pixels of a lane, l the logits.
///
/// `Quotient` is for the slopes, which need not be as exact as the values.
/// log p = x l - max(l, 0) - log(1 + exp(-|l|)), whose terms do not cancel each other; the
/// logarithms are taken as one of a product.
template <class Quotient>
class BernoulliPixels {
 public:
  /// Adds a pixel and returns the slope of its log p in l.
  Vec add(Vec x, Vec l, const PackedNetwork& /*network*/) {
    const Vec e = scaled_exp(minus_abs(l)).exp();
    product_ *= 1 + e;
    sum_ += x * l - (l > 0 ? l : Vec{});
    return x - Quotient::of(l > 0 ? splat(1.0F) : e, 1 + e);
  }

  void collect() {
    sum_ -= log(product_);
    product_ = splat(1.0F);
  }

  /// After `collect`. A NaN among the logits is in the sum.
  Vec total() const { return sum_; }

 private:
  Vec product_ = splat(1.0F), sum_ = {};
};

/// The same of normal pixels with means o, but for their normaliser. Nothing cancels.
class GaussianPixels {
 public:
  Vec add(Vec x, Vec o, const PackedNetwork& network) {
    const Vec apart = x - o, slope = network.precision * apart;
    sum_ += slope * apart;
    return slope;
  }
  void collect() {}
  Vec total() const { return -0.5F * sum_; }

 private:
  Vec sum_ = {};
};

}  // namespace
}  // namespace crais
