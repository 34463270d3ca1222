// Bases by curvatures alone, on densities whose normaliser is known.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "evidence/fits.h"
#include "samplers/importance.h"
#include "support/targets.h"
#include "targets/transformed.h"

namespace crais {
namespace {

constexpr int64_t kScaled = 100;

Base fitted(const Target& target) {
  at::Generator rng = make_generator(7);
  return fit_many_dims(target, {.one_density = true}, 64, rng);
}

at::Tensor log_normal(const at::Tensor& x, const at::Tensor& log_variance) {
  return -0.5 * (x.square() * (-log_variance).exp() + log_variance + std::log(2 * M_PI));
}

/// log tau ~ N(0, 1), effects ~ N(2, tau^2), one datum of each ~ N(effect, 1).
TEST(ManyDims, AreStraightenedWhereOneCoordinateScalesTheOthers) {
  at::Generator rng = make_generator(3);
  const at::Tensor y = 2 + 1.5 * at::randn({kScaled}, rng, at::kDouble),
                   one = at::zeros({}, at::kDouble);
  const auto target = testing::replicated(1 + kScaled, [=](const at::Tensor& z) {
    const at::Tensor log_tau = z.slice(-1, 0, 1), effects = z.slice(-1, 1);
    return log_normal(log_tau, one).squeeze(-1) +
           (log_normal(effects - 2, 2 * log_tau) + log_normal(y - effects, one)).sum(-1);
  });
  const at::Tensor log_tau = at::linspace(-6, 6, 4001, at::kDouble).unsqueeze(1);
  const at::Tensor heights = log_normal(log_tau, one).squeeze(1) +
                             log_normal(y - 2, at::log1p((2 * log_tau).exp())).sum(1);
  const double log_z = at::logsumexp(heights, 0).item<double>() + std::log(12.0 / 4000);

  const Base base = fitted(*target.select(at::zeros({1}, at::kLong)));
  ASSERT_TRUE(base.bijection);
  const auto straight = transformed(target.select(at::zeros({1}, at::kLong)), base.bijection);
  const at::Tensor log_w = importance_log_weights(Problem(straight, base.map), 4000, rng).log_w;
  EXPECT_GT(ess(log_w).item<double>(), 0.5);
  EXPECT_NEAR(log_mean_exp(log_w).item<double>(), log_z, 0.03);
}

/// Skewed, and no scale depends on another coordinate.
TEST(ManyDims, StayWhereNothingIsGained) {
  const auto skewed =
      testing::replicated(kScaled, [](const at::Tensor& z) { return (3 * z - z.exp()).sum(-1); });
  EXPECT_FALSE(fitted(*skewed.select(at::zeros({1}, at::kLong))).bijection);
}

}  // namespace
}  // namespace crais
