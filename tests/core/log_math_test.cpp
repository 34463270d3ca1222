#include "core/log_math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

at::Tensor randn(at::IntArrayRef sizes, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::randn(sizes, rng, at::kDouble);
}

at::Tensor row(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble).unsqueeze(0);
}

TEST(LogMeanExp, MatchesTheSum) {
  const at::Tensor x = randn({3, 7}, 1);
  EXPECT_LT(max_abs_diff(log_mean_exp(x), x.exp().mean(-1).log()), 1e-14);
}

TEST(LogMeanExp, SurvivesExtremes) {
  EXPECT_NEAR(log_mean_exp(row({1e4, -1e4})).item<double>(), 1e4 - std::log(2.0), 1e-11);
  EXPECT_NEAR(log_mean_exp(row({-1e4, -1e4})).item<double>(), -1e4, 1e-11);
  EXPECT_NEAR(log_mean_exp(row({0.0, -INFINITY})).item<double>(), -std::log(2.0), 1e-15);
  EXPECT_EQ(log_mean_exp(row({-INFINITY, -INFINITY})).item<double>(), -INFINITY);
}

TEST(LogNormalise, IsUniformWhereEveryWeightIsZero) {
  const at::Tensor w = log_normalise(row({-INFINITY, -INFINITY, -INFINITY, -INFINITY}));
  EXPECT_LT(max_abs_diff(w, at::full_like(w, -std::log(4.0))), 1e-15);
}

TEST(Ess, ClosedForms) {
  EXPECT_NEAR(ess(at::full({1, 8}, -3e4, at::kDouble)).item<double>(), 1.0, 1e-12);
  EXPECT_NEAR(ess(row({0, -1e4, -1e4, -1e4})).item<double>(), 0.25, 1e-12);
  EXPECT_NEAR(ess(row({5, 5, -INFINITY, -INFINITY})).item<double>(), 0.5, 1e-12);
  // (1 + 3)^2 / (2 (1 + 9))
  EXPECT_NEAR(ess(row({0, std::log(3.0)})).item<double>(), 0.8, 1e-14);
  EXPECT_EQ(ess(row({-INFINITY, -INFINITY})).item<double>(), 0.0);
}

TEST(Cess, ClosedForms) {
  // W = (1/4, 3/4), v = (1, 2): (1/4 + 6/4)^2 / (1/4 + 12/4).
  const at::Tensor w = log_normalise(row({0, std::log(3.0)})), v = row({0, std::log(2.0)});
  EXPECT_NEAR(cess_normalised(w, v).item<double>(), (49.0 / 16) / (13.0 / 4), 1e-14);
  EXPECT_NEAR(cess_normalised(w, v - 1e4).item<double>(), (49.0 / 16) / (13.0 / 4), 1e-9);
  EXPECT_EQ(cess_normalised(w, row({-INFINITY, -INFINITY})).item<double>(), 0.0);
  EXPECT_NEAR(cess_normalised(row({0, -INFINITY}), row({1, 500})).item<double>(), 1.0, 1e-12);
}

TEST(LogVarianceOfExp, MatchesTheDirectSum) {
  const at::Tensor h = randn({5, 50}, 5), log_w = log_normalise(randn({5, 50}, 6));
  const at::Tensor w = log_w.exp(), y = h.exp();
  const at::Tensor mean = (w * y).sum(-1, true);
  const at::Tensor direct = (w * (y - mean).square()).sum(-1).log();
  EXPECT_LT(max_abs_diff(log_variance_of_exp(h, log_w), direct), 1e-12);
}

TEST(LogVarianceOfExp, SurvivesHugeSpreads) {
  // Under uniform weights the largest alone counts: (1/K)(1 - 1/K) e^{2 max}.
  const at::Tensor h = at::linspace(-9e3, 7e3, 4 * 64, at::kDouble).view({4, 64});
  const at::Tensor uniform = at::full({4, 64}, -std::log(64.0), at::kDouble);
  const at::Tensor expected = 2 * h.amax(-1) + std::log(63.0) - 2 * std::log(64.0);
  EXPECT_LT(max_abs_diff(log_variance_of_exp(h, uniform), expected), 1e-9);
}

TEST(LogVarianceOfExp, SurvivesALargestParticleOfNegligibleWeight) {
  // e^h: 1 with weight ~0, e^-900 and e^-950 with weight 1/2 each: the variance is e^-1800 / 4.
  const at::Tensor h = row({0, -900, -950});
  const at::Tensor half = row({-3000, std::log(0.5), std::log(0.5)});
  EXPECT_NEAR(log_variance_of_exp(h, half).item<double>(), -1800 + std::log(0.25), 1e-9);
  const at::Tensor without = row({-INFINITY, std::log(0.5), std::log(0.5)});
  EXPECT_NEAR(log_variance_of_exp(h, without).item<double>(), -1800 + std::log(0.25), 1e-9);
}

TEST(LogVarianceOfExp, VanishesForAConstant) {
  const at::Tensor log_w = log_normalise(randn({1, 33}, 10));
  for (double h : {-1e4, 0.0, 1e4}) {
    const at::Tensor constant = at::full({1, 33}, h, at::kDouble);
    EXPECT_LT(log_variance_of_exp(constant, log_w).item<double>(), 2 * h - 45);
  }
  const at::Tensor zero = at::full({1, 33}, -INFINITY, at::kDouble);
  EXPECT_EQ(log_variance_of_exp(zero, log_w).item<double>(), -INFINITY);
}

}  // namespace
}  // namespace crais
