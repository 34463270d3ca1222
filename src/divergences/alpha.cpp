// f(u) = (u^alpha - alpha u) / (alpha (alpha - 1)) + 1 / alpha: g(u) = (u^alpha - 1) / alpha.
// At 0 it is KL(q || pi), f(u) = u - 1 - log u, at 1 KL(pi || q), f(u) = u log u - u + 1. Its
// annealing paths are the power means.
#include <cmath>

#include "core/divergence.h"
#include "core/log_math.h"

namespace crais {
namespace {

class AlphaDivergence : public Divergence {
 public:
  explicit AlphaDivergence(double alpha) : alpha_(std::abs(alpha) < 1e-6 ? 0.0 : alpha) {}

  at::Tensor f(const at::Tensor& log_u) const override {
    if (alpha_ == 0) return log_u.expm1() - log_u;
    if (alpha_ == 1) return log_u.exp() * log_u - log_u.expm1();
    return ((alpha_ * log_u).expm1() - alpha_ * log_u.expm1()) / (alpha_ * (alpha_ - 1));
  }
  at::Tensor g(const at::Tensor& log_u) const override {
    return alpha_ == 0 ? log_u : (alpha_ * log_u).expm1() / alpha_;
  }
  at::Tensor slope(const at::Tensor& log_u) const override {
    return alpha_ == 0 ? at::ones_like(log_u) : (alpha_ * log_u).exp();
  }
  std::optional<double> order() const override { return alpha_; }

  /// Works on logarithms: u^alpha overflows in all but a few dimensions.
  at::Tensor log_variance(const at::Tensor& kappa, const at::Tensor& variance_weights,
                          const at::Tensor& ratio_weights) const override {
    if (alpha_ == 0) {
      const at::Tensor w = variance_weights.exp();
      const at::Tensor mean = (w * kappa).sum(-1, /*keepdim=*/true);
      return (w * (kappa - mean).square()).sum(-1).log();
    }
    const at::Tensor log_r = at::logsumexp(ratio_weights + kappa, -1);
    return log_variance_of_exp(alpha_ * kappa, variance_weights) - 2 * alpha_ * log_r -
           2.0 * std::log(std::abs(alpha_));
  }

 private:
  double alpha_;
};

const Enrol<DivergenceRegistry> kEnrolAlpha(
    "alpha:ALPHA", "of order ALPHA: KL(q||pi) at 0, Hellinger's at 1/2, KL(pi||q) at 1",
    "alpha:0.5",
    [](Spec& spec) { return std::make_unique<AlphaDivergence>(spec.number("alpha", -100, 100)); });

}  // namespace
}  // namespace crais
