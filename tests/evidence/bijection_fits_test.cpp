// Bijections fitted to draws of densities whose shape is known.
#include <gtest/gtest.h>

#include <cmath>

#include "bases/normal_mixture.h"
#include "core/rng.h"
#include "evidence/fits.h"

namespace crais {
namespace {

constexpr int64_t kDraws = 2000;

at::Tensor normal_draws(int64_t dim, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::randn({kDraws, dim}, rng, at::kDouble);
}

/// A coupling by draws alone.
std::shared_ptr<const Coupling> coupling_by_draws(const at::Tensor& z) {
  return fit_coupling(z, no_funnels(z));
}

/// How much higher the mean log density of fresh draws is with the coupling than with one normal.
double gain(const at::Tensor& train, const at::Tensor& test) {
  at::Generator rng = make_generator(1);
  const auto coupling = coupling_by_draws(train);
  if (!coupling) return 0;
  const at::Tensor u = coupling->to_u(test);
  const NormalMixture with = fit_normals(coupling->to_u(train), 1, rng),
                      without = fit_normals(train, 1, rng);
  return (log_density(with, u) - coupling->log_abs_det(u) - log_density(without, test))
      .mean()
      .item<double>();
}

/// v ~ N(0, 9) and four others of variance exp(v).
at::Tensor funnel_draws(uint64_t seed) {
  const at::Tensor e = normal_draws(5, seed), v = 3 * e.slice(1, 0, 1);
  return at::cat({v, e.slice(1, 1) * (0.5 * v).exp()}, 1);
}

TEST(CouplingFit, UndoesAFunnel) {
  const at::Tensor test = funnel_draws(2);
  const auto coupling = coupling_by_draws(funnel_draws(1));
  ASSERT_TRUE(coupling);
  const at::Tensor u = coupling->to_u(test);
  EXPECT_TRUE(at::equal(u.select(1, 0), test.select(1, 0)));
  // In the neck and in the mouth the others have one scale.
  for (const at::Tensor& part : {test.select(1, 0) < -3, test.select(1, 0) > 3})
    EXPECT_NEAR(u.slice(1, 1).index({part}).std().item<double>(), 1, 0.15);
}

/// log tau ~ N(0, 1), mu ~ N(0, 25), theta ~ N(mu, tau^2): mu itself has no neck, so the neck is
/// seen only once the link to mu is. A normal has an entropy of 8 (log tau + 1.42) nats there.
TEST(CouplingFit, FindsTheNeckOfEffectsAboutACommonMean) {
  const auto effects = [](uint64_t seed) {
    const at::Tensor e = normal_draws(10, seed), log_tau = e.slice(1, 0, 1),
                     mu = 5 * e.slice(1, 1, 2);
    return at::cat({mu, log_tau, mu + log_tau.exp() * e.slice(1, 2)}, 1);
  };
  // One normal has the mean variance e^2 of an effect in place of e^(2 log tau): 8 nats worse.
  const double found = gain(effects(1), effects(2));
  EXPECT_NEAR(found, 8, 1.5);
  for (const double far : {1e3, 1e4}) {  // beside standard deviations of 5
    SCOPED_TRACE(far);
    EXPECT_NEAR(gain(effects(1) + far, effects(2) + far), found, 0.05);
  }
}

TEST(CouplingFit, UndoesABanana) {
  const auto banana = [](uint64_t seed) {
    const at::Tensor e = normal_draws(3, seed), x = e.slice(1, 0, 1);
    return at::cat({e.slice(1, 2), x, x.square() + 0.1 * e.slice(1, 1, 2)}, 1);
  };
  // The variance about a plane is that of x^2, 2 + 0.01; about the parabola it is 0.01.
  EXPECT_NEAR(gain(banana(1), banana(2)), 0.5 * std::log(201.0), 0.1);
}

TEST(CouplingFit, FindsNothingInNormals) {
  EXPECT_FALSE(coupling_by_draws(normal_draws(6, 1)));
  const at::Tensor mix = normal_draws(6, 2).slice(0, 0, 6);
  EXPECT_FALSE(coupling_by_draws(at::matmul(normal_draws(6, 3), mix) + 5));
}

/// The mean log density of draws by the density that the spline makes of N(0, 1).
double height(const Spline& spline, const at::Tensor& z) {
  const at::Tensor u = spline.to_u(z);
  return (-0.5 * u.square().sum(-1) - spline.log_abs_det(u)).mean().item<double>() -
         0.5 * std::log(2 * M_PI) * static_cast<double>(z.size(1));
}

/// 0.8 N(-2, 0.3^2) + 0.2 N(3, 0.1^2).
at::Tensor two_peaks(uint64_t seed) {
  at::Generator rng = make_generator(seed);
  const at::Tensor left = at::rand({kDraws, 1}, rng, at::kDouble) < 0.8;
  const at::Tensor e = normal_draws(1, seed + 1);
  return at::where(left, -2 + 0.3 * e, 3 + 0.1 * e);
}

TEST(SplineFit, MakesTwoModesOneNormal) {
  const auto spline = fit_spline(two_peaks(1));
  ASSERT_TRUE(spline);
  const at::Tensor test = two_peaks(3);
  // The entropy: of the choice, and of each normal.
  const double entropy = -(0.8 * std::log(0.8) + 0.2 * std::log(0.2)) + 0.8 * std::log(0.3) +
                         0.2 * std::log(0.1) + 0.5 * std::log(2 * M_PI * M_E);
  EXPECT_NEAR(height(*spline, test), -entropy, 0.05);
  const at::Tensor u = spline->to_u(test);
  EXPECT_NEAR(u.mean().item<double>(), 0, 0.1);
  EXPECT_NEAR(u.std().item<double>(), 1, 0.05);
}

/// Student's t of two degrees of freedom has no variance; one normal loses 0.6 nats.
TEST(SplineFit, TakesHeavyTails) {
  const auto student = [](uint64_t seed) {
    const at::Tensor e = normal_draws(3, seed);
    return e.slice(1, 0, 1) / (0.5 * e.slice(1, 1).square().sum(1, true)).sqrt();
  };
  const auto spline = fit_spline(student(1));
  ASSERT_TRUE(spline);
  const double entropy = 1.9597;  // of t_2, nats
  EXPECT_NEAR(height(*spline, student(2)), -entropy, 0.05);
}

/// Its tail, of shape 1/2, goes on where no draws were: P(t > x) is about 1 / (2 x^2).
TEST(SplineFit, ContinuesHeavyTailsBeyondTheDraws) {
  const at::Tensor e = normal_draws(3, 3);
  const at::Tensor t = e.slice(1, 0, 1) / (0.5 * e.slice(1, 1).square().sum(1, true)).sqrt();
  const auto spline = fit_spline(at::where(t > 0, t, 0.5 * e.slice(1, 0, 1)));  // on one side
  ASSERT_TRUE(spline);
  for (const double u : {3.0, 4.0}) {
    SCOPED_TRACE(u);
    const double z = spline->to_z(at::full({1, 1}, u, at::kDouble)).item<double>();
    const double expected = 1 / std::sqrt(std::erfc(u * M_SQRT1_2));
    EXPECT_NEAR(std::log(z / expected), 0, 0.5);
  }
  const at::Tensor low = at::tensor({-32.0, -31.0, -30.5}, at::kDouble).unsqueeze(1);
  const at::Tensor z = spline->to_z(low);  // the other tail is a line
  EXPECT_NEAR((z[1] - z[0]).item<double>(), 2 * (z[2] - z[1]).item<double>(), 1e-9);
}

/// Draws end before a neck, so the tails of what leads there are heavy whatever draws say.
TEST(SplineFit, GivesHeavyTailsWhereItIsTold) {
  SplineOptions options{.is_heavy = at::tensor({0, 1, 0}, at::kLong) > 0};
  const auto spline = fit_spline(normal_draws(3, 9), options);
  ASSERT_TRUE(spline);
  const at::Tensor far = at::tensor({-4.0, 4.0}, at::kDouble).unsqueeze(1).repeat({1, 3});
  const at::Tensor reach = spline->to_z(far).abs();
  EXPECT_GT(reach.select(1, 1).min().item<double>(), 6);
  EXPECT_LT(reach.select(1, 1).max().item<double>(), 12);
  for (const int64_t d : {0, 2}) EXPECT_EQ(reach.select(1, d).max().item<double>(), 4);
}

TEST(SplineFit, FindsNothingInNormals) {
  EXPECT_FALSE(fit_spline(normal_draws(20, 7) * 3 - 1));
  EXPECT_FALSE(fit_spline(at::ones({100, 2}, at::kDouble)));
}

}  // namespace
}  // namespace crais
