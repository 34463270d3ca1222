#include "evaluation/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "evaluation/chunk_result.h"

namespace crais {
namespace {

/// One method's table of R repeats [R,N].
MethodTable table_of(const at::Tensor& value, const at::Tensor& std_error, const at::Tensor& bias) {
  MethodTable table{.method = "ais"};
  for (int64_t r = 0; r < value.size(0); ++r) {
    table.columns["log_normalizer"].push_back(to_column(value[r]));
    table.columns["std_error"].push_back(to_column(std_error[r]));
    table.columns["bias"].push_back(to_column(bias[r]));
    table.flags.emplace_back(static_cast<size_t>(value.size(1)), 0);
  }
  return table;
}

ImageEstimates estimates(const std::vector<double>& values, double std_error = 0.1,
                         double bias = 0.0) {
  const at::Tensor v = at::tensor(values, at::kDouble).unsqueeze(0);
  return ImageEstimates(table_of(v, at::full_like(v, std_error), at::full_like(v, bias)));
}

TEST(Comparison, IsTheMeanOfDifferencesImageByImage) {
  const Comparison c =
      compare(estimates({-80, -90, -100, -110}), estimates({-81, -92, -103, -106}, 0.2));
  EXPECT_DOUBLE_EQ(c.difference.mean, 0.5);
  EXPECT_EQ(c.per_image, (std::vector<double>{1, 2, 3, -4}));
  EXPECT_NEAR(c.std_error[2], std::sqrt(0.05), 1e-15);
  EXPECT_NEAR(c.difference.data_std_error, std::sqrt(29.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(c.difference.monte_carlo_std_error, std::sqrt(4 * 0.05) / 4, 1e-15);
  EXPECT_DOUBLE_EQ(c.share_better, 0.75);
  EXPECT_NEAR(c.share_std_error, std::sqrt(0.75 * 0.25 / 4), 1e-15);
  EXPECT_EQ(c.clearly_better, 3);
  EXPECT_EQ(c.clearly_worse, 1);
  EXPECT_EQ(c.flagged, 0);
  EXPECT_FALSE(c.unflagged.has_value());
  // A difference within the chains' error is not clear.
  const Comparison near = compare(estimates({-80, -90}, 0.3), estimates({-80.8, -89.2}, 0.3));
  EXPECT_EQ(near.clearly_better, 0);
  EXPECT_EQ(near.clearly_worse, 0);
  EXPECT_DOUBLE_EQ(near.share_better, 0.5);
  EXPECT_NEAR(compare(estimates({-80, -90}, 0.1, -0.3), estimates({-80, -90}, 0.1, -0.1)).bias,
              -0.2, 1e-15);
  EXPECT_TRUE(std::isnan(compare(estimates({-80, -90}, 0.1, NAN), estimates({-80, -90})).bias));
}

TEST(Comparison, PairingTakesOutWhatImagesHaveInCommon) {
  at::Generator rng = make_generator(1);
  const at::Tensor images = 20 * at::randn({400}, rng, at::kDouble);
  const at::Tensor a = images + at::randn({400}, rng, at::kDouble), b = images - 0.5;
  const Comparison c = compare(estimates(to_column(a)), estimates(to_column(b)));
  EXPECT_NEAR(c.difference.data_std_error, 0.05, 0.01);
  EXPECT_NEAR(c.unpaired_std_error, std::sqrt(2.0), 0.15);
}

TEST(Comparison, IntervalCoversTheTruth) {
  // 95% of 2,000 intervals of eight images each: 5 sigma are 0.0244.
  at::Generator rng = make_generator(2);
  int64_t covered = 0;
  for (int i = 0; i < 2000; ++i) {
    const at::Tensor a = at::randn({8}, rng, at::kDouble) + 0.7;
    const Comparison c = compare(estimates(to_column(a)), estimates(std::vector<double>(8, 0.0)));
    covered += c.low < 0.7 && 0.7 < c.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / 2000, 0.95, 0.0244);
}

TEST(Comparison, FlaggedImagesAreLeftOutOnceMore) {
  ImageEstimates a = estimates({-80, -90, -100}), b = estimates({-81, -92, -150});
  b.flagged[2] = true;
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.flagged, 1);
  ASSERT_TRUE(c.unflagged.has_value());
  EXPECT_DOUBLE_EQ(c.unflagged->mean, 1.5);
  a.flagged = {true, true, false};
  EXPECT_FALSE(compare(a, b).unflagged.has_value());
}

TEST(ImageEstimates, AreMeansOverRepeats) {
  const at::Tensor value = at::tensor({-80.0, -90.0, -82.0, -94.0}, at::kDouble).view({2, 2});
  MethodTable table = table_of(value, at::full_like(value, 0.2), at::full_like(value, -0.02));
  table.flags[1][0] = kTail;
  const ImageEstimates found(table);
  EXPECT_EQ(found.value, (std::vector<double>{-81, -92}));
  EXPECT_NEAR(found.std_error[0], 0.2 / std::sqrt(2.0), 1e-15);
  EXPECT_EQ(found.flagged, (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace crais
