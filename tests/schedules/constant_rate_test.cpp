// Constant rate against closed forms and quadrature, with exact draws in place of a sampler.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/rng.h"
#include "core/schedule.h"
#include "support/expect_error.h"
#include "support/grid_density.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::GridDensity;
using testing::max_abs_diff;
using testing::z_scores;

at::Tensor normal_log_density(const at::Tensor& z, double mean, double sd) {
  return -0.5 * ((z - mean) / sd).square() - std::log(sd) - 0.5 * std::log(2 * M_PI);
}

/// Base N(0, 1), target c N(mean, sd^2), in each of the dimensions of z.
struct GaussianPair {
  double mean, sd, log_c = 0;

  at::Tensor log_q0(const at::Tensor& z) const { return normal_log_density(z, 0, 1); }
  at::Tensor log_gamma(const at::Tensor& z) const {
    return normal_log_density(z, mean, sd) + log_c;
  }

  // On the geometric path gamma_t is N(mu, 1 / lambda), and log gamma - log q0 = A z^2 + B z + C.
  at::Tensor lambda(const at::Tensor& t) const { return 1 - t + t / (sd * sd); }
  at::Tensor mu(const at::Tensor& t) const { return t * mean / (sd * sd) / lambda(t); }
  at::Tensor variance_of_log_ratio(const at::Tensor& t) const {
    const double a = 0.5 * (1 - 1 / (sd * sd)), b = mean / (sd * sd);
    return (2 * a * mu(t) + b).square() / lambda(t) + 2 * a * a / lambda(t).square();
  }
  double kl_from_base() const { return std::log(sd) + 0.5 * (1 + mean * mean) / (sd * sd) - 0.5; }
};

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
  ScheduleOptions options;
  options.max_step = max_step;
  options.tolerance = tolerance;
  options.weighted = weighted;
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

/// Three dimensions, each with a pair of its own.
const std::vector<GaussianPair> kPairs = {{1.3, 0.6, 0.7}, {-0.5, 1.5, -1.0}, {0.0, 0.8, 0.2}};

at::Tensor exact_rate(const at::Tensor& beta) {
  at::Tensor sum = at::zeros_like(beta);
  for (const auto& pair : kPairs) sum = sum + pair.variance_of_log_ratio(beta);
  return (1 - beta).square() * sum;
}

/// Exact draws of gamma_beta on the geometric path, beta [P].
Particles exact_draws(const at::Tensor& beta, int64_t num_particles, at::Generator& rng) {
  at::Tensor log_q0 = at::zeros({beta.size(0), num_particles}, at::kDouble), log_gamma = log_q0;
  const at::Tensor b = beta.unsqueeze(1);
  for (const auto& pair : kPairs) {
    const at::Tensor z =
        pair.mu(b) + at::randn(log_q0.sizes(), rng, at::kDouble) / pair.lambda(b).sqrt();
    log_q0 = log_q0 + pair.log_q0(z);
    log_gamma = log_gamma + pair.log_gamma(z);
  }
  return particles_of(log_q0, log_gamma);
}

TEST(ConstantRateGaussian, TakesTheExactStep) {
  constexpr double kDelta = 0.01;
  const auto rule = constant_rate(kDelta);
  const auto path = power(0);
  at::Generator rng = make_generator(1);
  for (double t : {0.0, 0.01, 0.2, 0.5, 0.8, 0.9}) {
    const at::Tensor beta = betas(60, t);
    const Particles particles = exact_draws(beta, 8000, rng);
    const at::Tensor rate = implied_rate(beta, next_beta(*rule, *path, particles, beta), kDelta);
    EXPECT_LT(z_scores(rate, exact_rate(beta)[0]).abs().item<double>(), 5) << t;
    EXPECT_LT(testing::std_error(rate), 0.01 * rate.mean().item<double>()) << t;
  }
}

TEST(ConstantRateGaussian, NeedsAboutDivergenceOverDeltaSteps) {
  constexpr double kDelta = 0.01;
  const auto rule = constant_rate(kDelta, 0.125, 1e-2);
  const auto path = power(0);
  double divergence = 0;
  for (const auto& pair : kPairs) divergence += pair.kl_from_base();
  at::Generator rng = make_generator(3);
  at::Tensor beta = betas(1, 0);
  int64_t steps = 0;
  for (; beta.item<double>() < 1 && steps < 5000; ++steps)
    beta = next_beta(*rule, *path, exact_draws(beta, 2000, rng), beta);
  EXPECT_NEAR(double(steps), divergence / kDelta, 0.1 * divergence / kDelta);
}

TEST(ConstantRateGaussian, ScalingTheTargetChangesNothing) {
  const auto rule = constant_rate(0.1);
  const auto path = power(0);
  at::Generator rng = make_generator(4);
  const at::Tensor beta = betas(5, 0.3);
  const Particles particles = exact_draws(beta, 100, rng);
  const at::Tensor next = next_beta(*rule, *path, particles, beta);
  for (double log_c : {-3000.0, -1.0, 40.0, 3000.0}) {
    const Particles scaled = particles_of(particles.log_q0, particles.log_gamma + log_c);
    EXPECT_LT(max_abs_diff(next_beta(*rule, *path, scaled, beta), next), 1e-10) << log_c;
  }
}

class ConstantRateOrders : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Alpha, ConstantRateOrders, ::testing::Values(-0.5, 0, 0.25, 0.5, 1, 2),
                         [](const auto& instance) {
                           return "order" + std::to_string(instance.index);
                         });

/// V = Var[(gamma / gamma_t)^alpha] r^-alpha / alpha^2 under gamma_t, r = E[gamma / gamma_t].
TEST_P(ConstantRateOrders, MatchesQuadrature) {
  const double alpha = GetParam();
  const auto path = power(alpha);
  const GaussianPair pair{0.8, 0.7, 0.9};  // order -1/2 needs a variance above 1/3
  const auto kappa_of = [&](const at::Tensor& z, const at::Tensor& beta) {
    return pair.log_gamma(z) - path->at(beta, pair.log_q0(z), pair.log_gamma(z)).log_density;
  };
  for (double t : {0.05, 0.5, 0.9}) {
    const at::Tensor one = at::full({1}, t, at::kDouble);
    const GridDensity annealed(
        [&](const at::Tensor& z) {
          return path->at(one, pair.log_q0(z), pair.log_gamma(z)).log_density;
        },
        -11, 12);
    const at::Tensor kappa = kappa_of(annealed.grid(), one);
    const at::Tensor g = alpha == 0 ? kappa : (alpha * kappa).exp() / alpha;
    const double mean = annealed.expect(g), r = annealed.expect(kappa.exp());
    const double exact =
        annealed.expect((g - mean).square()) * (alpha == 0 ? 1 : std::pow(r, -alpha));

    at::Generator rng = make_generator(5);
    const at::Tensor z = annealed.sample({50, 8000}, rng), beta = betas(50, t);
    constexpr double kDelta = 1e-3;
    const at::Tensor next = next_beta(*constant_rate(kDelta, 1, 1e-9), *path,
                                      particles_of(pair.log_q0(z), pair.log_gamma(z)), beta);
    const at::Tensor rate = implied_rate(beta, next, kDelta);
    EXPECT_LT(z_scores(rate, at::full({}, exact, at::kDouble)).abs().item<double>(), 5) << t;
    EXPECT_LT(testing::std_error(rate), 0.02 * exact) << t;
  }
}

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

/// The target N(1, 0.01 I) in 512 dimensions, from draws between base and target.
TEST_P(ConstantRateOrders, IsNeverNanIn512Dimensions) {
  const double alpha = GetParam();
  const auto path = power(alpha);
  const GaussianPair pair{1.0, 0.1};
  at::Generator rng = make_generator(7);
  for (const bool weighted : {false, true}) {
    const auto rule = constant_rate(32, 0.125, 1e-3, weighted);
    for (double t : {0.0, 0.001, 0.3, 0.99}) {
      const at::Tensor one = at::full({}, t, at::kDouble);
      const at::Tensor z =
          pair.mu(one) + at::randn({2, 32, 512}, rng, at::kDouble) / pair.lambda(one).sqrt();
      const at::Tensor log_q0 = pair.log_q0(z).sum(-1), log_gamma = pair.log_gamma(z).sum(-1);
      const at::Tensor beta = betas(2, t);
      try {
        const at::Tensor next = next_beta(*rule, *path, particles_of(log_q0, log_gamma), beta, true,
                                          t * (log_gamma - log_q0));
        EXPECT_TRUE(((next > beta) & (next <= 1)).all().item<bool>()) << t;
      } catch (const Error& error) {  // far from the target, with orders away from 0
        const std::string message = error.what();
        EXPECT_NE(alpha, 0) << message;
        EXPECT_EQ(error.kind(), ErrorKind::kArgument);
        EXPECT_EQ(message.find("nan"), std::string::npos) << message;
      }
    }
  }
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
    ScheduleOptions options;
    options.max_step = 1;
    options.weighted = weighted;
    options.weighted_ratio = weighted_ratio;
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
