// Constant rate against its definition. samplers/divergence_test.cpp has what it promises of a run.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/rng.h"
#include "core/schedule.h"
#include "support/expect_error.h"

namespace crais {
namespace {

Particles particles_of(const at::Tensor& log_q0, const at::Tensor& log_gamma) {
  return {at::Tensor(), log_q0, log_gamma, at::Tensor(), at::Tensor()};
}

at::Tensor next_beta(const ScheduleRule& rule, const Path& path, const Particles& particles,
                     const at::Tensor& beta, bool shared = false, const at::Tensor& log_w = {}) {
  const at::Tensor weights = log_w.defined() ? log_w : at::zeros_like(particles.log_q0);
  return rule.next({0, beta, particles, weights, shared}, path);
}

std::unique_ptr<ScheduleRule> constant_rate(double delta, double max_step = 1,
                                            double tolerance = 1e-3, bool weighted = false) {
  ScheduleOptions options{.max_step = max_step, .tolerance = tolerance, .weighted = weighted};
  std::ostringstream spec;
  spec << "constant-rate:" << delta;
  return ScheduleRegistry::instance().make("schedule", spec.str(), options);
}

std::unique_ptr<Path> power(double alpha) {
  return PathRegistry::instance().make("path", "power:" + std::to_string(alpha));
}

/// V, from log(1 - beta') = log(1 - beta) - delta / V.
at::Tensor implied_rate(const at::Tensor& beta, const at::Tensor& next, double delta) {
  return delta / (at::log1p(-beta) - at::log1p(-next));
}

at::Tensor betas(int64_t problems, double beta) { return at::full({problems}, beta, at::kDouble); }

class ConstantRateOrders : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Alpha, ConstantRateOrders, ::testing::Values(-0.5, 0, 0.25, 0.5, 1, 2),
                         [](const auto& instance) {
                           return "order" + std::to_string(instance.index);
                         });

/// Half of the particles at kappa = 0 and half at kappa = -5000.
TEST_P(ConstantRateOrders, SurvivesTheScalesOfHighDimensions) {
  const double alpha = GetParam();
  const at::Tensor log_q0 = at::full({1, 64}, -700.0, at::kDouble);
  at::Tensor kappa = at::zeros({1, 64}, at::kDouble);
  kappa.slice(1, 32) -= 5000;
  const Particles particles = particles_of(log_q0, log_q0 + kappa);
  const at::Tensor beta = betas(1, 0);
  const auto path = power(alpha);
  if (alpha < 0) {  // V is exp(2500) and more: no step is short enough
    expect_error(ErrorKind::kArgument, {"constant-rate", "stalled", "beta = 0", "step 0"},
                 [&] { next_beta(*constant_rate(0.25), *path, particles, beta); });
    return;
  }
  // Var[kappa] = 2500^2; else u is 2 or 0, and r = 1/2 is below what it can be.
  const double r = alpha <= 1 ? 1 : std::pow(2.0, 1 / alpha - 1);
  const double rate = alpha == 0
                          ? 2500.0 * 2500.0
                          : 0.25 * std::pow(2.0, 2 * alpha) * std::pow(r, alpha) / (alpha * alpha);
  const at::Tensor next = next_beta(*constant_rate(0.25), *path, particles, beta);
  EXPECT_NEAR(next.item<double>(), -std::expm1(-0.25 / rate), 1e-12);
}

/// The rate is Var[e^(alpha kappa)] r^-alpha / alpha^2, and the weights of each factor can be
/// chosen.
TEST_P(ConstantRateOrders, WeighsTheVarianceAndTheMassRatioApart) {
  const double alpha = GetParam();
  const auto path = power(alpha);
  at::Generator rng = make_generator(9);
  const at::Tensor log_q0 = at::zeros({1, 400}, at::kDouble);
  const Particles particles =
      particles_of(log_q0, 0.6 * at::randn({1, 400}, rng, at::kDouble) + 0.5);
  const at::Tensor log_w = at::randn({1, 400}, rng, at::kDouble), beta = betas(1, 0.3);
  constexpr double kDelta = 1e-4;
  const auto rate = [&](bool weighted, bool weighted_ratio) {
    ScheduleOptions options{.max_step = 1, .weighted = weighted, .weighted_ratio = weighted_ratio};
    const auto rule = ScheduleRegistry::instance().make("schedule", "constant-rate:1e-4", options);
    return implied_rate(beta, next_beta(*rule, *path, particles, beta, false, log_w), kDelta)
        .item<double>();
  };
  const at::Tensor kappa =
      particles.log_gamma - path->at(beta.unsqueeze(1), log_q0, particles.log_gamma).log_density;
  const at::Tensor uniform = at::full_like(log_w, 1.0 / 400), w = log_w.softmax(-1);
  const auto expected = [&](const at::Tensor& variance_weights, const at::Tensor& ratio_weights) {
    if (alpha == 0) {
      const at::Tensor mean = (variance_weights * kappa).sum();
      return (variance_weights * (kappa - mean).square()).sum().item<double>();
    }
    const at::Tensor power_of_u = (alpha * kappa).exp(),
                     mean = (variance_weights * power_of_u).sum();
    const double variance = (variance_weights * (power_of_u - mean).square()).sum().item<double>();
    const double r = (ratio_weights * kappa.exp()).sum().item<double>();
    return variance * std::pow(r, -alpha) / (alpha * alpha);
  };
  EXPECT_NEAR(rate(false, false) / expected(uniform, uniform), 1, 1e-6);
  EXPECT_NEAR(rate(false, true) / expected(uniform, w), 1, 1e-6);
  EXPECT_NEAR(rate(true, false) / expected(w, w), 1, 1e-6);
  EXPECT_NEAR(rate(true, true) / expected(w, w), 1, 1e-6);
}

/// Weights that rest on one particle leave no variance, which is no arrival: the error says so.
TEST(ConstantRate, SaysThatTheWeightsHaveCollapsed) {
  const Particles particles = particles_of(at::zeros({1, 64}, at::kDouble),
                                           at::linspace(-300, -100, 64, at::kDouble).unsqueeze(0));
  const at::Tensor log_w = at::linspace(0, 6400, 64, at::kDouble).unsqueeze(0);
  expect_error(ErrorKind::kArgument,
               {"constant-rate would end", "rest on 1 of 64", "`weighted`", "`resampling`"}, [&] {
                 next_beta(*constant_rate(1, 0.125, 1e-3, true), *power(0), particles,
                           betas(1, 0.5), false, log_w);
               });
}

TEST(ConstantRate, SharesTheMeanOfTheRates) {
  constexpr double kDelta = 0.01;
  const auto rule = constant_rate(kDelta);
  at::Generator rng = make_generator(8);
  const at::Tensor beta = betas(4, 0.2), log_q0 = at::zeros({4, 50}, at::kDouble);
  const at::Tensor spread = at::tensor({0.5, 1.0, 2.0, 3.0}, at::kDouble).unsqueeze(1);
  const Particles particles = particles_of(log_q0, spread * at::randn({4, 50}, rng, at::kDouble));
  for (double alpha : {0.0, 0.5}) {
    const auto path = power(alpha);
    const at::Tensor own =
        implied_rate(beta, next_beta(*rule, *path, particles, beta, false), kDelta);
    const at::Tensor shared = next_beta(*rule, *path, particles, beta, true);
    EXPECT_TRUE(at::equal(shared, shared[0].expand_as(shared)));
    EXPECT_NEAR(implied_rate(beta, shared, kDelta)[0].item<double>(), own.mean().item<double>(),
                1e-9);
  }
}

TEST(ConstantRate, ArrivesWhereLittleVarianceRemains) {
  at::Generator rng = make_generator(9);
  const at::Tensor log_q0 = at::zeros({2, 64}, at::kDouble);
  const Particles particles = particles_of(log_q0, 0.01 * at::randn({2, 64}, rng, at::kDouble));
  const at::Tensor next =
      next_beta(*constant_rate(1e-9, 0.25, 1e-3), *power(0), particles, betas(2, 0.8));
  EXPECT_TRUE((next == 1).all().item<bool>());
}

TEST(ConstantRate, LeavesNoStepTooSmallToDivide) {
  // 1 - beta falls by exp(-delta / V), V = 0.0025 here: what remains of 0.1 would be a rounding
  // error.
  const at::Tensor log_q0 = at::zeros({1, 2}, at::kDouble);
  const Particles particles =
      particles_of(log_q0, at::tensor({0.5, -0.5}, at::kDouble).unsqueeze(0));
  const at::Tensor beta = betas(1, 0.9);
  EXPECT_EQ(next_beta(*constant_rate(0.085, 1), *power(0), particles, beta).item<double>(), 1.0);
  const double before =
      next_beta(*constant_rate(0.05, 1), *power(0), particles, beta).item<double>();
  EXPECT_NEAR(1 - before, 0.1 * std::exp(-20), 1e-14);
  EXPECT_LT(before, 1.0);
  // The largest step still holds.
  EXPECT_NEAR(next_beta(*constant_rate(0.085, 0.03), *power(0), particles, beta).item<double>(),
              0.93, 1e-12);
}

TEST(ConstantRate, RefusesToArriveEarly) {
  // Much more mass than the problem was centred for, and few particles in it: at a negative order V
  // underflows, and the overlap is 1 / 32.
  const at::Tensor log_q0 = at::zeros({1, 32}, at::kDouble);
  at::Tensor log_gamma = at::full({1, 32}, 5000.0, at::kDouble);
  log_gamma[0][7] = 5030;
  expect_error(
      ErrorKind::kArgument, {"constant-rate", "beta = 0 ", "`tolerance` 0.001", "0.03125"}, [&] {
        next_beta(*constant_rate(0.25), *power(-0.5), particles_of(log_q0, log_gamma), betas(1, 0));
      });
}

/// One particle overlaps with the target, or so it seems, and the true mass ratio is at least 1:
/// u = e^kappa / r is 32 for one particle, 0 for the others, and V = Var[u^alpha] / alpha^2.
TEST(ConstantRate, KeepsGoingWhereItDoesNotSeeTheTarget) {
  const at::Tensor log_q0 = at::zeros({1, 32}, at::kDouble);
  at::Tensor log_gamma = at::full({1, 32}, -30000.0, at::kDouble);
  log_gamma[0][7] = -29000;
  const at::Tensor beta = betas(1, 0);
  for (const double alpha : {0.25, 0.5, 0.75, 1.0, 2.0}) {
    const double power_mean = std::pow(32, alpha) / 32, square = std::pow(32, 2 * alpha) / 32;
    const double least_r = alpha <= 1 ? 1 : std::pow(2.0, 1 / alpha - 1);
    const double rate =
        (square - power_mean * power_mean) * std::pow(least_r, alpha) / (alpha * alpha);
    const at::Tensor next =
        next_beta(*constant_rate(0.01, 1), *power(alpha), particles_of(log_q0, log_gamma), beta);
    EXPECT_NEAR(implied_rate(beta, next, 0.01).item<double>(), rate, 1e-6 * rate) << alpha;
  }
}

}  // namespace
}  // namespace crais
