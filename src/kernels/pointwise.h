// Operations between the matrix products: activations, and the likelihood of pixels after the last.
// Slopes need less precision than values: the source file's layers have their `force_quotient`.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

/// t = tanh(log(1 + exp(x))), the factor of x in Mish, and 1 - t.
struct TanhSoftplus {
  explicit TanhSoftplus(Vec x) {
    const Vec e = scaled_exp(minus_abs(x)).exp();
    const Vec near = x < 0 ? e * (e + 2) : 1 + 2 * e, far = x < 0 ? splat(2.0F) : 2 * e * e;
    const Vec inverse = quotient(splat(1.0F), near + far);
    value = near * inverse;
    rest = far * inverse;
  }
  Vec value, rest;
};

/// Applies an activation to `count` inputs. `out` may be `x`.
void activate(Activation activation, const Vec* x, Vec* out, int64_t count) {
  const auto each = [=](auto function) {
    for (int64_t i = 0; i < count; ++i) out[i] = function(x[i]);
  };
  const Vec leak = splat(static_cast<float>(activation.leak));
  switch (activation.kind) {
    case Activation::kIdentity:
      return each([](Vec a) { return a; });
    case Activation::kTanh:
      return each([](Vec a) { return tanh(a); });
    case Activation::kElu:
      return each([](Vec a) { return elu(a); });
    case Activation::kRelu:
      return each([](Vec a) { return relu(a); });
    case Activation::kLeakyRelu:
      return each([=](Vec a) { return a < 0 ? leak * a : a; });
    case Activation::kSoftplus:
      return each([](Vec a) { return softplus(a); });
    case Activation::kSigmoid:
      return each([](Vec a) { return Sigmoid(a).value; });
    case Activation::kSilu:
      return each([](Vec a) { return a * Sigmoid(a).value; });
    case Activation::kGelu:
      return each([](Vec a) { return a * Normal(a).below; });
    case Activation::kMish:
      return each([](Vec a) { return a * TanhSoftplus(a).value; });
  }
}

/// Replaces h, the activation's output (its input if `is_input`), by g times the slope at h.
void back_through(Activation activation, bool is_input, const Vec* g, Vec* h, int64_t count) {
  if (is_input && activation.slope_is_of_output()) activate(activation, h, h, count);
  const auto times = [=](auto slope) {
    for (int64_t i = 0; i < count; ++i) h[i] = g[i] * slope(h[i]);
  };
  const Vec one = splat(1.0F), leak = splat(static_cast<float>(activation.leak)), zero = {};
  switch (activation.kind) {
    case Activation::kIdentity:
      return times([=](Vec) { return one; });
    case Activation::kTanh:
      return times([](Vec a) { return 1 - a * a; });
    case Activation::kElu:
      return times([=](Vec a) { return a > 0 ? one : a + 1; });
    case Activation::kRelu:
      return times([=](Vec a) { return a > 0 ? one : zero; });
    case Activation::kLeakyRelu:
      return times([=](Vec a) { return a > 0 ? one : leak; });
    case Activation::kSoftplus:
      return times([](Vec a) { return -scaled_exp(-a).expm1(); });
    case Activation::kSigmoid:
      return times([](Vec a) { return a * (1 - a); });
    case Activation::kSilu:
      return times([](Vec a) {
        const Sigmoid s(a);
        return s.value * (1 + a * s.rest);
      });
    case Activation::kGelu:
      return times([](Vec a) {
        const Normal normal(a);
        return normal.below + a * normal.density;
      });
    case Activation::kMish:
      return times([](Vec a) {
        const TanhSoftplus t(a);
        return t.value + a * t.rest * (1 + t.value) * Sigmoid(a).value;
      });
  }
}

/// out += x.
inline void add(const Vec* x, Vec* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] += x[i];
}

/// The most pixels of a lane between two calls of `collect`: the product of that many factors 1 +
/// exp(-|l|) <= 2 stays below the largest float.
constexpr int64_t kMostPixels = 120;

/// sum_j log p(x_j | l_j) over the pixels of a lane with logits l.
///
/// log p = x l - max(l, 0) - log(1 + exp(-|l|)), whose terms do not cancel each other. One
/// logarithm of a product replaces the logarithms.
class BernoulliPixels {
 public:
  /// Adds a pixel, and returns the slope of its log p in l.
  Vec add(Vec x, Vec l, const PackedNetwork& /*network*/) {
    const Vec e = scaled_exp(minus_abs(l)).exp();
    product_ *= 1 + e;
    sum_ += x * l - (l > 0 ? l : Vec{});
    return x - force_quotient(l > 0 ? splat(1.0F) : e, 1 + e);
  }

  void collect() {
    sum_ -= log(product_);
    product_ = splat(1.0F);
  }

  /// The sum; call `collect` first. A NaN among the logits makes it NaN.
  Vec total() const { return sum_; }

 private:
  Vec product_ = splat(1.0F), sum_ = {};
};

/// The sum for continuous Bernoulli pixels: log p = (x - 1/2) l - log(2 sinh(l / 2) / l). That
/// logarithm is even in l and its slope odd; both are series near 0.
class ContinuousBernoulliPixels {
 public:
  Vec add(Vec x, Vec l, const PackedNetwork& /*network*/) {
    constexpr float kNear = 0.7F;
    constexpr float kLog[] = {1.0F / 24, -1.0F / 2880, 1.0F / 181440};
    constexpr float kMean[] = {1.0F / 12, -1.0F / 720, 1.0F / 30240, -1.0F / 1209600};
    const Vec size = -minus_abs(l), square = l * l, one = splat(1.0F);
    const Vec safe = size < kNear ? one : size;
    const Vec rest = -scaled_exp(-safe).expm1();  // 1 - exp(-|l|)
    const Vec far = x * l - (l > 0 ? l : Vec{}) - log(quotient(rest, safe));
    const Vec far_mean = force_quotient(one, rest) - force_quotient(one, safe) - 0.5F;
    const Vec above_half = size < kNear ? size * polynomial(square, kMean) : far_mean;
    const Vec centred = x - 0.5F;
    sum_ += size < kNear ? centred * l - square * polynomial(square, kLog) : far;
    return centred - (l < 0 ? -above_half : above_half);
  }
  void collect() {}
  Vec total() const { return sum_; }

 private:
  Vec sum_ = {};
};

/// Turns an output into the mean of a normal pixel, and gives the slope as a function of the mean.
struct OutputIsMean {
  static Vec of(Vec output) { return output; }
  static Vec slope(Vec /*mean*/) { return splat(1.0F); }
};
struct SigmoidIsMean {
  static Vec of(Vec output) { return Sigmoid(output).value; }
  static Vec slope(Vec mean) { return mean * (1 - mean); }
};
struct TanhIsMean {
  static Vec of(Vec output) { return tanh(output); }
  static Vec slope(Vec mean) { return 1 - mean * mean; }
};

/// The sum for normal pixels, without their normaliser. No terms cancel.
template <class Mean>
class GaussianPixels {
 public:
  Vec add(Vec x, Vec o, const PackedNetwork& network) {
    const Vec mean = Mean::of(o), apart = x - mean, slope = network.precision * apart;
    sum_ += slope * apart;
    return slope * Mean::slope(mean);
  }
  void collect() {}
  Vec total() const { return -0.5F * sum_; }

 private:
  Vec sum_ = {};
};

}  // namespace
}  // namespace crais
