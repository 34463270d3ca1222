// Funnels of densities whose shape is known, from draws that do not reach into them.
#include <gtest/gtest.h>

#include <cmath>

#include "bases/normal_mixture.h"
#include "core/rng.h"
#include "evidence/fits.h"
#include "support/targets.h"

namespace crais {
namespace {

constexpr int64_t kEffects = 6;

at::Tensor standard_normal(at::IntArrayRef shape, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::randn(shape, rng, at::kDouble);
}

/// log tau ~ N(0, 1), mu ~ N(0, 25), six effects ~ N(mu, tau^2). The density is not a number where
/// log tau is below `least`.
FunctionTarget effects_target(double least = -INFINITY) {
  return testing::replicated(2 + kEffects, [least](const at::Tensor& z) {
    const at::Tensor mu = z.slice(-1, 0, 1), log_tau = z.slice(-1, 1, 2);
    const at::Tensor e = (z.slice(-1, 2) - mu) * (-log_tau).exp();
    const at::Tensor value = (-0.5 * e.square() - log_tau).sum(-1) -
                             0.5 * (log_tau.square() + (mu / 5).square()).squeeze(-1);
    return value.masked_fill(log_tau.squeeze(-1) < least, NAN);
  });
}

/// Draws of them with log tau between two limits.
at::Tensor effects(double least, double most, uint64_t seed) {
  const at::Tensor e = standard_normal({4000, 2 + kEffects}, seed), log_tau = e.slice(1, 1, 2),
                   mu = 5 * e.slice(1, 0, 1);
  const at::Tensor all = at::cat({mu, log_tau, mu + log_tau.exp() * e.slice(1, 2)}, 1);
  const at::Tensor kept = (log_tau > least) & (log_tau < most);
  return all.index_select(0, kept.squeeze(1).nonzero().squeeze(1));
}

/// The mean log density of draws `test` by a normal in the coordinates of a coupling.
double height(const Coupling& coupling, const at::Tensor& train, const at::Tensor& test) {
  at::Generator rng = make_generator(1);
  const at::Tensor u = coupling.to_u(test);
  return (log_density(fit_normals(coupling.to_u(train), 1, rng), u) - coupling.log_abs_det(u))
      .mean()
      .item<double>();
}

Funnels found(const Target& target, const at::Tensor& draws, Cost& cost) {
  at::Generator rng = make_generator(7);
  return find_funnels(target, draws, rng, cost);
}

TEST(Funnels, AreFoundByDrawsOfTheMouth) {
  Cost cost;
  const Funnels funnels = found(effects_target(), effects(-0.5, 1, 1), cost);
  EXPECT_TRUE(at::equal(funnels.drivers.nonzero().flatten(), at::tensor({1}, at::kLong)));
  EXPECT_TRUE(at::equal(funnels.dependent, ~funnels.drivers));  // mu, given the effects, as well
  EXPECT_TRUE(funnels.is_concave.all().item<bool>());
}

/// The draws have the right conditional scale, and reach as far as 8 nats: 4 standard deviations.
TEST(Funnels, AreDrawnFromTheConditionalDensity) {
  Cost cost;
  const at::Tensor z = found(effects_target(), effects(-0.5, 1, 1), cost).draws.flatten(0, 1);
  const at::Tensor log_tau = z.slice(1, 1, 2);
  EXPECT_LT(log_tau.min().item<double>(), -3);
  EXPECT_GT(log_tau.min().item<double>(), -4.2);
  EXPECT_GT(log_tau.max().item<double>(), 3);
  const at::Tensor e = (z.slice(1, 2) - z.slice(1, 0, 1)) * (-log_tau).exp();
  EXPECT_NEAR(e.std().item<double>(), 1, 0.05);
  EXPECT_NEAR(z.select(1, 0).std().item<double>(), 5, 0.8);
}

/// Draws of the mouth alone say nothing of the neck; with curvatures its density is right.
TEST(Funnels, LetACouplingHoldWhereThereWereNoDraws) {
  const at::Tensor train = effects(-0.5, 1, 1), neck = effects(-3.5, -2, 2);
  Cost cost;
  const Funnels funnels = found(effects_target(), train, cost);
  const at::Tensor with_neck = at::cat({train, funnels.draws.flatten(0, 1)});
  const auto coupling = fit_coupling(with_neck, funnels),
             blind = fit_coupling(train, no_funnels(train));
  ASSERT_TRUE(coupling);
  ASSERT_TRUE(blind);
  // Entropies of normals: of mu, and of the effects given log tau. The rest is log tau's.
  const double constant = 0.5 * std::log(2 * M_PI * M_E);
  const double entropy =
      constant + std::log(5.0) + kEffects * (constant + neck.select(1, 1).mean().item<double>());
  EXPECT_GT(height(*coupling, with_neck, neck),
            -entropy - 4.5);  // log tau is 2 or 3 deviations out
  EXPECT_LT(height(*blind, train, neck), -entropy - 8);
}

/// Four effects theta_i ~ N(0, (tau lambda_i)^2), each measured as 3 with variance 1. log tau and
/// log lambda_i ~ N(0, 1), and come first.
constexpr int64_t kCount = 4;
FunctionTarget local_scales_target() {
  return testing::replicated(1 + 2 * kCount, [](const at::Tensor& z) {
    const at::Tensor log_tau = z.slice(-1, 0, 1), log_lambda = z.slice(-1, 1, 1 + kCount),
                     theta = z.slice(-1, 1 + kCount), s = log_tau + log_lambda;
    return (-0.5 * (theta * (-s).exp()).square() - s - 0.5 * (theta - 3).square() -
            0.5 * log_lambda.square())
               .sum(-1) -
           0.5 * log_tau.squeeze(-1).square();
  });
}

/// Draws near the mouth. Given the scales, an effect is normal: precisions and means add up.
at::Tensor local_scales() {
  const at::Tensor e = standard_normal({2000, 9}, 5), scales = 0.6 * e.slice(1, 0, 5) + 0.3;
  const at::Tensor s = scales.slice(1, 0, 1) + scales.slice(1, 1, 5);
  const at::Tensor precision = 1 + (-2 * s).exp();
  return at::cat({scales, 3 / precision + e.slice(1, 5) * precision.rsqrt()}, 1);
}

/// Every effect has a neck of its own, which two scales lead to.
TEST(Funnels, HaveKneesWhereTheirPriorMeetsTheData) {
  Cost cost;
  const at::Tensor z = local_scales();
  const Funnels funnels = found(local_scales_target(), z, cost);
  EXPECT_TRUE(at::equal(funnels.drivers, at::arange(9) < 1 + kCount));
  EXPECT_TRUE(at::equal(funnels.dependent, ~funnels.drivers));
  // Of theta_i: t = s_i, where the precision 1 + exp(-2 s_i) bends. At t = 0 it is 2.
  at::Tensor wanted = at::zeros({2, 9, 10}, at::kDouble);
  for (int64_t i = 0; i < kCount; ++i) {
    wanted[0][1 + kCount + i][1] = 1;
    wanted[0][1 + kCount + i][2 + i] = 1;
    wanted[1][1 + kCount + i][0] = -0.5 * std::log(2.0);
  }
  EXPECT_LT((funnels.knees - wanted).abs().max().item<double>(), 1e-6);
  // A coupling holds far down in every neck, where means are near 0.
  const auto coupling = fit_coupling(at::cat({z, funnels.draws.flatten(0, 1)}), funnels);
  ASSERT_TRUE(coupling);
  at::Tensor u = at::zeros({2, 9}, at::kDouble);
  u.slice(1, 0, 1 + kCount).fill_(-4);  // s = -8
  u.slice(1, 1 + kCount) = at::tensor({-1.0, 1.0}, at::kDouble).unsqueeze(1);
  const at::Tensor theta = coupling->to_z(u).slice(1, 1 + kCount);
  EXPECT_LT((0.5 * (theta[1] - theta[0])).log().add(8).abs().max().item<double>(), 0.15);
  EXPECT_LT(theta.abs().max().item<double>(), 0.3);
}

TEST(Funnels, PlacesWithoutADensityAreLeftOut) {
  Cost cost;
  const Funnels funnels = found(effects_target(-1), effects(-0.5, 1, 1), cost);
  EXPECT_GT(funnels.draws.size(0), 0);
  EXPECT_GE(funnels.draws.select(2, 1).min().item<double>(), -1);
}

TEST(Funnels, AreNotSeenWhereThereAreNone) {
  Cost cost;
  const at::Tensor e = standard_normal({1000, 4}, 3);
  const at::Tensor x = 1 + std::sqrt(0.5) * e.slice(1, 0, 1);
  const at::Tensor banana = at::cat({x, x.square() + 0.07 * e.slice(1, 1, 2)}, 1);
  const auto expect_none = [&](const FunctionTarget& target, const at::Tensor& draws) {
    EXPECT_FALSE(found(target, draws, cost).drivers.any().item<bool>()) << target.dim();
  };
  expect_none(testing::replicated(4,
                                  [](const at::Tensor& z) {
                                    return -0.5 * z.square().sum(-1) -
                                           0.3 * (z.select(-1, 0) - z.select(-1, 1)).square();
                                  }),
              e);
  // A shell of radius 2: nothing is concave on it.
  const auto shell = [](const at::Tensor& z) { return -50 * (z.norm(2, -1) - 2).square(); };
  expect_none(testing::replicated(4, shell), 2 * e / e.norm(2, 1, true));
  // Rosenbrock's banana: its width depends on where it bends, but no driver reaches far.
  const auto rosenbrock = [](const at::Tensor& z) {
    const at::Tensor a = z.select(-1, 0), b = z.select(-1, 1);
    return -100 * (b - a.square()).square() - (1 - a).square();
  };
  expect_none(testing::replicated(2, rosenbrock), banana);
}

TEST(Funnels, AreNotSeenWithoutCurvatures) {
  Cost cost;
  const Funnels funnels = found(effects_target(9), effects(-0.5, 1, 1), cost);
  EXPECT_FALSE(funnels.drivers.any().item<bool>());
  EXPECT_FALSE(funnels.is_concave.any().item<bool>());
}

}  // namespace
}  // namespace crais
