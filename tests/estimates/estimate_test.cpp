#include "estimates/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

at::Tensor randn(at::IntArrayRef sizes, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::randn(sizes, rng, at::kDouble);
}

TEST(LogNormalizer, IsTheLogOfTheMeanWeight) {
  const at::Tensor w = at::tensor({1.0, 2.0, 3.0, 6.0}, at::kDouble).unsqueeze(0);
  for (double shift : {0.0, -1e4}) {
    const Estimate found = log_normalizer(w.log() + shift);
    EXPECT_NEAR(found.value.item<double>(), std::log(3.0) + shift, 1e-9);
    EXPECT_NEAR(found.ess.item<double>(), 144.0 / (4 * 50), 1e-9);
  }
}

TEST(LogNormalizer, ErrorIsThatOfLeavingEachOut) {
  const at::Tensor w = at::tensor({1.0, 2.0, 3.0, 6.0}, at::kDouble);
  const at::Tensor left_out = ((12 - w) / 3).log();
  const double variance = 0.75 * (left_out - left_out.mean()).square().sum().item<double>();
  const Estimate found = log_normalizer(w.log().unsqueeze(0) - 1e4);
  EXPECT_NEAR(found.std_error.item<double>(), std::sqrt(variance), 1e-9);
  EXPECT_NEAR(found.bias.item<double>(), -variance / 2, 1e-9);
}

/// Log-weights of spread 1: the delta method would promise 11% too little error and 21% too little
/// bias.
TEST(LogNormalizer, ErrorAndBiasOfSixteenUnevenWeights) {
  const Estimate found = log_normalizer(randn({40'000, 16}, 5) - 0.5);  // E[w] = 1
  const double spread = found.value.std(0, true).item<double>();
  EXPECT_NEAR(found.std_error.square().mean().sqrt().item<double>() / spread, 1, 0.04);
  const double bias = found.value.mean().item<double>();  // known to 3%
  EXPECT_NEAR(found.bias.mean().item<double>() / bias, 1, 0.12);
}

TEST(LogNormalizer, ASingleWeightBoundsNothing) {
  at::Tensor log_w = at::full({1, 16}, -1e3, at::kDouble);
  log_w[0][3] = 0;
  const Estimate found = log_normalizer(log_w);
  EXPECT_GT(found.std_error.item<double>(), 10);
  EXPECT_TRUE(std::isfinite(found.std_error.item<double>()));
  EXPECT_TRUE(suspect_error(found).item<bool>());
}

TEST(LogNormalizer, ErrorIsNotBelowThatSinceTheLastResampling) {
  const at::Tensor log_w = randn({1, 8}, 2);
  const Estimate alone = log_normalizer(log_w);
  Genealogy apart{at::arange(8).unsqueeze(0), at::full({1}, 5.0, at::kDouble), {}, true};
  EXPECT_EQ(log_normalizer(log_w, apart).std_error.item<double>(), alone.std_error.item<double>());
  Genealogy family{at::tensor({0, 0, 0, 0, 0, 0, 0, 1}, at::kLong).unsqueeze(0),
                   apart.num_resamplings,
                   {},
                   true};
  EXPECT_GT(log_normalizer(log_w, family).std_error.item<double>(),
            2 * alone.std_error.item<double>());
}

TEST(LogNormalizer, OneParticleHasNoError) {
  EXPECT_TRUE(log_normalizer(randn({2, 1}, 2)).std_error.isnan().all().item<bool>());
}

TEST(EvidenceLowerBound, IsTheMeanLogWeight) {
  const at::Tensor log_w = randn({4000, 50}, 3);
  const Estimate found = evidence_lower_bound(log_w);
  EXPECT_LT(max_abs_diff(found.value, log_w.mean(1)), 1e-14);
  const double spread = found.value.std(0, true).item<double>();
  EXPECT_NEAR(found.std_error.mean().item<double>(), spread, 5 * 0.012 * spread);
  EXPECT_LT(max_abs_diff(found.ess, ess(log_w)), 1e-15);
}

TEST(MeanOverImages, KeepsItsTwoErrorsApart) {
  const at::Tensor value = at::tensor({-80.0, -90.0, -100.0, -110.0}, at::kDouble).view({1, 4});
  const at::Tensor error = at::tensor({0.3, 0.4, 0.0, 1.2}, at::kDouble).view({1, 4});
  const MeanEstimate once = mean_over_images(value, error);
  EXPECT_NEAR(once.mean, -95, 1e-12);
  EXPECT_NEAR(once.data_std_error, std::sqrt(500.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(once.monte_carlo_std_error, 1.3 / 4, 1e-12);
  // Two repeats, means -95 and -94: the spread of the means counts, not the given errors.
  const at::Tensor twice_value = at::cat({value, value + 1});
  const MeanEstimate twice = mean_over_images(twice_value, at::cat({error, error}));
  EXPECT_NEAR(twice.mean, -94.5, 1e-12);
  EXPECT_NEAR(twice.data_std_error, std::sqrt(500.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(twice.monte_carlo_std_error, std::sqrt(0.5) / std::sqrt(2.0), 1e-12);
}

TEST(BitsPerDim, IsNatsOverDimensionsInBits) {
  EXPECT_NEAR(bits_per_dim(-784 * std::log(2.0), 784), 1.0, 1e-14);
}

TEST(LogNormalizer, WithoutAnyWeightIsNotTrusted) {
  const Estimate none = log_normalizer(at::full({1, 8}, -INFINITY, at::kDouble));
  EXPECT_EQ(none.value.item<double>(), -INFINITY);
  EXPECT_TRUE(suspect_error(none).item<bool>());
}

TEST(StdErrorOfMean, IsUnknownOfOne) {
  EXPECT_TRUE(std::isnan(std_error_of_mean(at::ones({1}, at::kDouble))));
  EXPECT_DOUBLE_EQ(std_error_of_mean(at::tensor({1.0, 3.0}, at::kDouble)), 1.0);
}

TEST(Intervals, AreStudents) {
  // Quantiles of Student's t at 0.975 (tables).
  EXPECT_NEAR(interval_width(1'000'000), 1.95996, 1e-5);
  EXPECT_NEAR(interval_width(31), 2.0423, 1e-4);
  EXPECT_NEAR(interval_width(11), 2.2281, 1e-3);
  EXPECT_NEAR(interval_width(6), 2.5706, 1e-2);
  EXPECT_TRUE(std::isnan(interval_width(1)));
}

}  // namespace
}  // namespace crais
