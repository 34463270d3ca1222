#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "data/images.h"
#include "support/scratch.h"
#include "util/files.h"

namespace crais {
namespace {

TEST(Synthetic, HasTheShapeOfMnist) {
  const Images images = synthetic_images(30, 1);
  EXPECT_EQ(images.pixels.sizes(), (std::vector<int64_t>{30, 784}));
  EXPECT_EQ(images.pixels.scalar_type(), at::kByte);
  EXPECT_EQ(images.labels->sizes(), (std::vector<int64_t>{30}));
  EXPECT_EQ(images.rows, 28);
  EXPECT_EQ(images.cols, 28);
  EXPECT_EQ(images.source, "synthetic");
}

TEST(Synthetic, EachImageDependsOnSeedAndIndexAlone) {
  const Images many = synthetic_images(200, 5), few = synthetic_images(20, 5);
  EXPECT_TRUE(at::equal(many.pixels.slice(0, 0, 20), few.pixels));
  EXPECT_TRUE(at::equal(many.labels->slice(0, 0, 20), *few.labels));
  EXPECT_NE(many.md5, few.md5);
  EXPECT_EQ(few.md5, synthetic_images(20, 5).md5);
  const Images other = synthetic_images(20, 6);
  for (int64_t i = 0; i < 20; ++i) EXPECT_FALSE(at::equal(few.pixels[i], other.pixels[i])) << i;
}

TEST(Synthetic, NeverChanges) {
  // Checkpoints record this digest as the data that they were trained on.
  EXPECT_EQ(synthetic_images(1000, 1).md5, "859a99b60fd7d6c8a649dfccbadb73d9");
}

TEST(Synthetic, EveryDigitIsEquallyCommon) {
  constexpr int64_t kCount = 5000;
  const at::Tensor counts = at::bincount(synthetic_images(kCount, 2).labels->to(at::kLong));
  ASSERT_EQ(counts.numel(), 10);
  const double sd = std::sqrt(kCount * .1 * .9);
  for (int64_t digit = 0; digit < 10; ++digit)
    EXPECT_NEAR(counts[digit].item<double>(), kCount * .1, 5 * sd) << digit;
}

TEST(Synthetic, InkLooksLikeMnists) {
  const Images images = synthetic_images(2000, 3);
  const at::Tensor pixels = images.pixels.to(at::kDouble).reshape({-1, 28, 28}) / 255;
  // MNIST: mean grey level 0.13, 81% black; the digit fills the middle and spares the edge.
  EXPECT_NEAR(pixels.mean().item<double>(), .13, .04);
  EXPECT_NEAR(pixels.eq(0).to(at::kDouble).mean().item<double>(), .79, .06);
  const at::Tensor ink = pixels.sum({1, 2});
  EXPECT_GT(ink.min().item<double>(), 15);
  EXPECT_LT(ink.max().item<double>(), 300);
  EXPECT_LT(pixels.select(1, 0).mean().item<double>(), .005);
  EXPECT_LT(pixels.select(2, 27).mean().item<double>(), .005);
  EXPECT_EQ(pixels.amax({1, 2}).min().item<double>(), 1);
}

/// The share of the second half's images whose nearest class mean, of the first half, is theirs.
TEST(Synthetic, DigitsCanBeToldApart) {
  const Images images = synthetic_images(4000, 4);
  const at::Tensor x = images.pixels.to(at::kFloat), labels = images.labels->to(at::kLong);
  const at::Tensor train = x.slice(0, 0, 2000), train_labels = labels.slice(0, 0, 2000);
  std::vector<at::Tensor> means;
  for (int64_t digit = 0; digit < 10; ++digit)
    means.push_back(train.index({train_labels.eq(digit)}).mean(0));
  const at::Tensor found = at::cdist(x.slice(0, 2000), at::stack(means)).argmin(1);
  const double accuracy = found.eq(labels.slice(0, 2000)).to(at::kDouble).mean().item<double>();
  EXPECT_GT(accuracy, .6);   // chance is .1, MNIST .82
  EXPECT_LT(accuracy, .97);  // and no two are alike
}

TEST(Synthetic, NoneIsAnError) {
  expect_error(ErrorKind::kArgument, {"0 asked for"}, [] { synthetic_images(0, 1); });
}

TEST(Synthetic, IsQuick) {
  const auto start = std::chrono::steady_clock::now();
  synthetic_images(6000, 1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", static_cast<int>(1000 * seconds.count()));
  EXPECT_LT(seconds.count(), 4);  // 0.1 s on an idle machine; sanitizers and neighbours are slower
}

}  // namespace
}  // namespace crais
