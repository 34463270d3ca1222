// Bases of several parts: modes and mixtures on densities of known normaliser.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "bases/base.h"
#include "bases/normal_mixture.h"
#include "core/rng.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::replicated;

Base fit(const std::string& spec, const Target& target, uint64_t seed = 1, bool density = true) {
  at::Generator rng = make_generator(seed);
  return make_base(spec, {density})->build(target, rng);
}

/// N(-7, 1) and 9 times as much N(7, 0.5^2) in the plane.
at::Tensor two_widths(const at::Tensor& z) {
  const at::Tensor wide = -0.5 * (z + 7).square().sum(-1) + std::log(0.1);
  const at::Tensor narrow = -2 * (z - 7).square().sum(-1) + std::log(0.9 * 4);
  return at::logaddexp(wide, narrow) - std::log(2 * M_PI);
}

TEST(Modes, AreFoundFarFromThePrior) {
  const Base base = fit("modes:1.1", replicated(2, two_widths, 3));
  ASSERT_TRUE(base.partition && at::equal(base.partition->counts(), at::full({3}, 2, at::kLong)));
  EXPECT_NEAR(base.map.loc()[0][0].item<double>(), 7, 1e-3);
  EXPECT_NEAR(base.map.loc()[1][0].item<double>(), -7, 1e-3);
  EXPECT_NEAR(base.partition->log_share[0].exp().item<double>(), 0.9, 1e-3);
  EXPECT_NEAR(base.map.matrix()[0][0][0].item<double>(), 1.1 * 0.5, 0.02);
  EXPECT_FALSE(base.ambiguous.any().item<bool>());
  EXPECT_GT(base.cost.densities, 0);
  const Base of_images = fit("modes", replicated(2, two_widths, 50), 1, /*density=*/false);
  EXPECT_TRUE(of_images.partition && of_images.partition->counts().eq(2).all().item<bool>());
}

/// Functions may be slow, or never return, far from a prior.
TEST(Modes, AreSoughtNoFartherThanAPriorReaches) {
  for (const bool has_prior : {false, true}) {
    double farthest = 0;
    const auto waves = [&](const at::Tensor& z, const at::Tensor& /*index*/) {
      farthest = std::max(farthest, z.abs().max().item<double>());
      return (-0.5 * z.square() + z.cos()).sum(-1);
    };
    const FunctionTargetOptions options{.num_problems = 2, .dim = 4, .has_prior = has_prior};
    fit("modes", FunctionTarget(options, FunctionTarget::IndexedLogDensity(waves)));
    EXPECT_EQ(farthest < 10, has_prior) << farthest;
  }
}

/// A spike that no draw leads to, and a point beside it that somebody knows of.
TEST(Modes, ClimbFromKnownPoints) {
  const auto spike = [](const at::Tensor& z, const at::Tensor& /*index*/) {
    const at::Tensor narrow =
        -0.5 * ((z - 3) / 0.01).square().sum(-1) + std::log(9.0) - 10 * std::log(0.01);
    return at::logaddexp(-0.5 * z.square().sum(-1), narrow);
  };
  FunctionTargetOptions options{2, 10, at::kDouble};
  const Base without =
      fit("modes:1,starts=8", FunctionTarget(options, FunctionTarget::IndexedLogDensity(spike)));
  EXPECT_FALSE(without.partition);
  options.starts = at::full({1, 10}, 3.001, at::kDouble);
  const FunctionTarget known(options, FunctionTarget::IndexedLogDensity(spike));
  const Base with = fit("modes:1,starts=8", known);
  ASSERT_TRUE(with.partition);
  EXPECT_NEAR(with.map.loc()[0][0].item<double>(), 3, 1e-3);
  EXPECT_NEAR(with.partition->log_share[0].exp().item<double>(), 0.9, 1e-3);
  EXPECT_NE(probe(known),
            probe(FunctionTarget({2, 10, at::kDouble}, FunctionTarget::IndexedLogDensity(spike))));
}

/// Wells of two depths in each coordinate.
FunctionTarget wells(int64_t dim) {
  return replicated(
      dim, [](const at::Tensor& z) { return (0.5 * z + 6 * z.square() - z.pow(4)).sum(-1); });
}

/// Hardly any mode is heavy, but the light ones have both sides of each coordinate.
TEST(Modes, KeepWhatIsTooLightToBeAPart) {
  EXPECT_FALSE(fit("modes", wells(3)).ambiguous.any().item<bool>());
  const Base base = fit("modes", wells(16));
  EXPECT_TRUE(base.ambiguous.all().item<bool>());  // all light ones together are heavy
  ASSERT_TRUE(base.light_modes);
  EXPECT_GT(base.light_modes->num_problems(), 20);
  const at::Tensor loc = base.light_modes->loc();
  EXPECT_TRUE((loc > 1.5).any(0).all().item<bool>());
  EXPECT_TRUE((loc < -1.5).any(0).all().item<bool>());
}

/// Flat below 0: the fit at the kink is too narrow on that side, and a wider one stands beside it.
TEST(Modes, ReachPastAKink) {
  const Base base =
      fit("modes", replicated(2, [](const at::Tensor& z) {
            return -0.5 * z.square().sum(-1) - 200 * (at::relu(z) - 0.02).square().sum(-1);
          }));
  ASSERT_TRUE(base.partition);
  EXPECT_GT(base.map.matrix().diagonal(0, 1, 2).max().item<double>(), 0.8);
}

/// Of each image, half of the mass is at a mode to which 1 start in 8 leads.
TEST(Modes, AreSeldomMissedOfAnImage) {
  const auto two = [](const at::Tensor& z) {
    const at::Tensor narrow = -8 * (z - 1).square().sum(-1) + 4 * std::log(4.0);
    return at::logaddexp(-0.5 * (z + 0.5).square().sum(-1), narrow);
  };
  const Base base = fit("modes", replicated(4, two, 100), 1, /*density=*/false);
  ASSERT_TRUE(base.partition);
  EXPECT_GE(base.partition->counts().gt(1).sum().item<int64_t>(), 85);  // 62 by 8 starts
}

/// Of the second image, hardly a point of the sweep is where the mass is.
TEST(Modes, SumsAreBoundsWhereManyPointsCount) {
  const FunctionTarget target(
      {2, 2, at::kDouble},
      FunctionTarget::IndexedLogDensity([](const at::Tensor& z, const at::Tensor& index) {
        const at::Tensor sd = at::tensor({0.5, 0.003}, at::kDouble).index_select(0, index);
        return -0.5 * (z / sd.view({-1, 1, 1})).square().sum(-1);
      }));
  const at::Tensor at_least = fit("modes", target, 1, /*density=*/false).at_least;
  EXPECT_NEAR(at_least[0].item<double>(), std::log(2 * M_PI * 0.25), 0.02);
  EXPECT_TRUE(at_least[1].isneginf().item<bool>());
}

TEST(NormalMixture, IsFittedToDraws) {
  at::Generator rng = make_generator(3);
  const at::Tensor e = at::empty({4000, 2}, at::kDouble).normal_(0, 1, rng);
  const at::Tensor is_left = at::empty({4000, 1}, at::kDouble).uniform_(0, 1, rng) < 0.25;
  const NormalMixture found = fit_normals(at::where(is_left, 0.5 * e - 4, e + 3), 2, rng);
  const int64_t left = found.loc[0][0].item<double>() < 0 ? 0 : 1;
  EXPECT_NEAR(found.loc[left][0].item<double>(), -4, 0.1);
  EXPECT_NEAR(found.log_share[left].exp().item<double>(), 0.25, 0.03);
  EXPECT_NEAR(found.root[left][0][0].item<double>(), 0.5, 0.1);
  EXPECT_NEAR(found.root[1 - left][1][1].item<double>(), 1, 0.1);
}

TEST(Mixture, IsOneNormalWhereOneFits) {
  const auto normal = [](const at::Tensor& z) { return -2 * (z - 3).square().sum(-1); };
  EXPECT_EQ(fit("mixture", replicated(5, normal)).map.num_problems(), 1);
}

at::Tensor funnel(const at::Tensor& z) {
  const at::Tensor v = z.select(-1, 0), x = z.slice(-1, 1);
  return -v.square() / 18 - (0.5 * x.square() * (-v).exp().unsqueeze(-1)).sum(-1) -
         0.5 * static_cast<double>(x.size(-1)) * v;
}

/// A funnel has no normal near it, but in the coordinates of a coupling it is one. A trial of this
/// seed is high by luck.
TEST(Mixture, CoversAFunnel) {
  const FunctionTarget target = replicated(10, funnel);
  const Base base = fit("mixture:192", target, 4);
  ASSERT_TRUE(base.bijection);
  at::Generator rng = make_generator(1);
  const at::Tensor e = at::randn({base.map.num_problems(), 1000, 10}, rng, at::kDouble);
  const at::Tensor v = base.bijection->to_z(base.map.to_z(e)).select(-1, 0);
  EXPECT_LT(v.min().item<double>(), -7);
  EXPECT_GT(v.max().item<double>(), 7);
}

/// Steps from a base that has a bijection are steps in its coordinates: a bent density stays right.
TEST(Mixture, IsRefinedInItsOwnCoordinates) {
  const auto bent = [](const at::Tensor& z) {
    const at::Tensor x = z.select(-1, 0), y = z.select(-1, 1), other = z.select(-1, 2);
    return -x.square() / 18 - (y - x.square()).square() / 0.08 - (other - 5).square() / 2;
  };
  const Base base = fit("variational:1,from=mixture", replicated(3, bent, 1), 3);
  ASSERT_TRUE(base.bijection);
  at::Generator rng = make_generator(1);
  const at::Tensor e = at::randn({base.map.num_problems(), 2000, 3}, rng, at::kDouble);
  const at::Tensor z = base.bijection->to_z(base.map.to_z(e));
  EXPECT_NEAR((z.select(-1, 1) - z.select(-1, 0).square()).std().item<double>(), 0.2, 0.05);
  EXPECT_NEAR(z.select(-1, 0).std().item<double>(), 3, 0.5);
}

/// 2^16 modes with 85% of each coordinate on the right: more than normals, and one normal after
/// splines. The search for modes sees both sides of each coordinate.
TEST(Mixture, CoversAllCombinationsOfModes) {
  const Base base = fit("mixture", wells(16), 2);
  ASSERT_TRUE(base.bijection);
  at::Generator rng = make_generator(1);
  const at::Tensor e = at::randn({base.map.num_problems(), 1000, 16}, rng, at::kDouble);
  const at::Tensor right =
      (base.bijection->to_z(base.map.to_z(e)) > 0).to(at::kDouble).mean(at::IntArrayRef{0, 1});
  EXPECT_LT((right - 0.85).abs().mean().item<double>(), 0.08);
  EXPECT_LT(right.max().item<double>(), 0.97);  // no coordinate lacks a side
  EXPECT_GT(right.min().item<double>(), 0.6);
}

/// A bijection belongs to all problems, so images, whose problems differ, have none.
TEST(Mixture, TransformsOnlyReplicates) {
  const auto each = [](const at::Tensor& z, const at::Tensor& /*index*/) { return funnel(z); };
  const FunctionTarget two({2, 2, at::kDouble}, FunctionTarget::IndexedLogDensity(each));
  const Base base = fit("mixture:128,rounds=1", two, 1, false);
  EXPECT_FALSE(base.bijection);
  ASSERT_TRUE(base.partition);
  EXPECT_GE(base.partition->num_parts(), 4);
}

/// From the prior most equal steps miss a shell that is thin in it, and then the other shell.
TEST(Mixture, FindsBothOfTwoThinShells) {
  const at::Tensor centres = at::zeros({2, 10}, at::kDouble);
  centres.select(1, 0).copy_(at::tensor({-3.5, 3.5}, at::kDouble));
  const auto shells = [=](const at::Tensor& z) {
    const at::Tensor x = 12 * at::special_ndtr(z) - 6;  // uniform on [-6, 6]^10
    const at::Tensor from = (x.unsqueeze(-2) - centres).square().sum(-1).sqrt();
    return at::logsumexp(-0.5 * ((from - 2) / 0.1).square(), -1) - 0.5 * z.square().sum(-1);
  };
  const Base base = fit("mixture", replicated(10, shells), 3);
  const at::Tensor x = 12 * at::special_ndtr(base.map.loc().select(1, 0)) - 6;
  const at::Tensor reach = 12 * base.map.matrix().select(1, 0).norm(2, -1) / std::sqrt(2 * M_PI);
  EXPECT_TRUE((x + reach > 3).any().item<bool>());
  EXPECT_TRUE((x - reach < -3).any().item<bool>());
}

constexpr int64_t kMany = kManyDims + 2;

/// Above kManyDims there are no trials, and no widening, which would cost a nat for every hundred
/// dimensions. Where modes are nearly normal, they are all that there is.
TEST(Mixture, IsTheModesInManyDimensions) {
  constexpr double kSd = 0.5;
  const auto normal = [](const at::Tensor& z) { return -0.5 * ((z - 1) / kSd).square().sum(-1); };
  const Base base = fit("mixture", replicated(kMany, normal));
  EXPECT_FALSE(base.partition);
  EXPECT_FALSE(base.ambiguous.any().item<bool>());
  EXPECT_LT(testing::max_abs_diff(base.map.loc(), at::ones({1, kMany}, at::kDouble)), 1e-4);
  EXPECT_LT(testing::max_abs_diff(base.map.matrix()[0], kSd * at::eye(kMany, at::kDouble)), 1e-3);
  EXPECT_LT(base.cost.densities, 5000);
  // E[exp z] = 2 for the nearest normal of this variance: its mean is log 2 - 1 / 4.
  const auto skewed = [](const at::Tensor& z) { return (2 * z - z.exp()).sum(-1); };
  const at::Tensor mean = fit("mixture", replicated(kMany, skewed)).map.loc();
  EXPECT_NEAR(mean.mean().item<double>(), std::log(2.0) - 0.25, 0.08);
}

/// The density is unbounded where the scale of effects goes to 0 with them, but has no mass there.
TEST(Mixture, AvoidsPolesInManyDimensions) {
  const at::Tensor y = at::linspace(-2, 2, kMany - 1, at::kDouble);
  const auto effects = [&](const at::Tensor& z) {
    const at::Tensor log_scale = z.select(-1, 0), x = z.slice(-1, 1);
    const at::Tensor e = x / log_scale.exp().unsqueeze(-1);
    return -0.5 * (e.square() + (x - y).square()).sum(-1) - (kMany - 1) * log_scale;
  };
  const Base base = fit("mixture", replicated(kMany, effects));
  EXPECT_NEAR(base.bijection->to_z(base.map.loc())[0][0].item<double>(),
              0.5 * std::log(y.var().item<double>() - 1), 0.2);
}

/// Autograd says that the derivative of |z| is 0 at 0. A climb that starts there would stay, and
/// take the curvature of the prior for that of the density.
TEST(Laplace, SaysWhereItStandsOnAKink) {
  const auto kink = [](const at::Tensor& z) {
    return -0.5 * z.square().sum(-1) - 10 * z.abs().sum(-1);
  };
  EXPECT_TRUE(fit("laplace", replicated(3, kink)).fell_back.all().item<bool>());
  const auto normal = [](const at::Tensor& z) { return -3 * z.square().sum(-1); };
  const Base base = fit("laplace", replicated(3, normal));
  EXPECT_FALSE(base.fell_back.any().item<bool>());
  EXPECT_TRUE(at::allclose(base.map.loc(), at::zeros({1, 3}, at::kDouble)));
}

}  // namespace
}  // namespace crais
