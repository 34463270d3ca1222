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

/// The base, and log-weights of draws from it.
std::pair<Base, at::Tensor> fitted(const Target& target) {
  at::Generator rng = make_generator(7);
  const auto one = target.select(at::zeros({1}, at::kLong));
  const Base base = fit_many_dims(*one, {.one_density = true}, 64, rng);
  const Problem problem(transformed(one, base.bijection), base.map);
  return {base, importance_log_weights(problem, 4000, rng).log_w};
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
    const at::Tensor effects = z.slice(-1, 0, kScaled), log_tau = z.slice(-1, kScaled);
    return log_normal(log_tau, one).squeeze(-1) +
           (log_normal(effects - 2, 2 * log_tau) + log_normal(y - effects, one)).sum(-1);
  });
  const at::Tensor log_tau = at::linspace(-6, 6, 4001, at::kDouble).unsqueeze(1);
  const at::Tensor heights = log_normal(log_tau, one).squeeze(1) +
                             log_normal(y - 2, at::log1p((2 * log_tau).exp())).sum(1);
  const double log_z = at::logsumexp(heights, 0).item<double>() + std::log(12.0 / 4000);

  const at::Tensor log_w = fitted(target).second;
  EXPECT_GT(ess(log_w).item<double>(), 0.5);
  EXPECT_NEAR(log_mean_exp(log_w).item<double>(), log_z, 0.03);
}

/// t, e ~ N(0, I), three data of each ~ N(0, exp(2 exp(t) e)). Draws of the prior differ by any
/// number of nats, and the mode has no mass.
TEST(ManyDims, AreFoundFromTheMiddleOfThePrior) {
  const at::Tensor zero = at::zeros({}, at::kDouble), y = at::tensor({0.2, 3.0}, at::kDouble);
  const auto of_each = [=](const at::Tensor& t, const at::Tensor& e, const at::Tensor& datum) {
    return log_normal(e, zero) + 3 * log_normal(datum, 2 * t.exp() * e);
  };
  const auto target = testing::replicated(1 + kScaled, [=](const at::Tensor& z) {
    const at::Tensor t = z.slice(-1, 0, 1), all = y.repeat({kScaled / 2});
    return log_normal(t, zero).squeeze(-1) + of_each(t, z.slice(-1, 1), all).sum(-1);
  });
  const at::Tensor x = at::linspace(-8, 8, 1601, at::kDouble), log_step = at::log(x[1] - x[0]),
                   each = at::logsumexp(of_each(x.view({-1, 1, 1}), x.unsqueeze(1), y), 1);
  const at::Tensor heights = log_normal(x, zero) + kScaled / 2 * (each + log_step).sum(1);
  const double log_z = (at::logsumexp(heights, 0) + log_step).item<double>();
  EXPECT_GT(fitted(target).second.mean().item<double>(), log_z - 8);
}

/// Skewed, and no scale depends on another coordinate.
TEST(ManyDims, StayWhereNothingIsGained) {
  const auto skewed =
      testing::replicated(kScaled, [](const at::Tensor& z) { return (3 * z - z.exp()).sum(-1); });
  EXPECT_FALSE(fitted(skewed).first.bijection);
}

}  // namespace
}  // namespace crais
