#include "data/binarisation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/expect_error.h"

namespace crais {
namespace {

at::Tensor binarised(const std::string& text, const at::Tensor& pixels, int64_t first_index = 0,
                     uint64_t generator_seed = 1) {
  at::Generator generator = make_generator(generator_seed);
  return binarise(parse_binarisation(text), pixels, first_index, generator);
}

/// [rows, 256]: column g holds grey level g.
at::Tensor ramp(int64_t rows) { return at::arange(256, at::kInt).to(at::kByte).repeat({rows, 1}); }

TEST(Binarisation, ParsesAndPrintsTheSame) {
  for (const std::string text : {"dynamic", "static:7", "threshold:127", "none", "amat"})
    EXPECT_EQ(to_string(parse_binarisation(text)), text);
  EXPECT_EQ(parse_binarisation("static:7").seed, 7U);
  EXPECT_EQ(parse_binarisation("threshold:127").threshold, 127);
}

TEST(Binarisation, BadTextIsAUsageError) {
  expect_error(ErrorKind::kArgument,
               {"unknown binarisation 'grey'", "dynamic, static:SEED, threshold:T, none, amat"},
               [] { parse_binarisation("grey"); });
  expect_error(ErrorKind::kArgument, {"needs seed"}, [] { parse_binarisation("static"); });
  expect_error(ErrorKind::kArgument, {"'x' is not a whole number"},
               [] { parse_binarisation("static:x"); });
  expect_error(ErrorKind::kArgument, {"seed: must lie in"},
               [] { parse_binarisation("static:-1"); });
  expect_error(ErrorKind::kArgument, {"needs threshold"}, [] { parse_binarisation("threshold"); });
  expect_error(ErrorKind::kArgument, {"[0, 254]"}, [] { parse_binarisation("threshold:255"); });
  expect_error(ErrorKind::kArgument, {"dynamic takes none"},
               [] { parse_binarisation("dynamic:3"); });
}

TEST(Binarisation, LawsAgreeOnlyWhereTheyAreTheSame) {
  const auto same = [](const std::string& a, const std::string& b) {
    return same_law(parse_binarisation(a), parse_binarisation(b));
  };
  EXPECT_TRUE(same("dynamic", "static:1"));
  EXPECT_TRUE(same("static:2", "static:1"));
  EXPECT_TRUE(same("amat", "dynamic"));
  EXPECT_TRUE(same("threshold:5", "threshold:5"));
  EXPECT_TRUE(same("none", "none"));
  EXPECT_FALSE(same("threshold:5", "threshold:6"));
  EXPECT_FALSE(same("threshold:0", "none"));
  EXPECT_FALSE(same("dynamic", "threshold:127"));
  EXPECT_FALSE(same("none", "static:1"));
}

class DrawnBinarisation : public ::testing::TestWithParam<std::string> {};

TEST_P(DrawnBinarisation, TurnsPixelsOnWithTheirGreyLevelsProbability) {
  constexpr int64_t kRows = 20000;
  const at::Tensor x = binarised(GetParam(), ramp(kRows));
  ASSERT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::logical_or(x.eq(0), x.eq(1)).all().item<bool>());
  const at::Tensor mean = x.to(at::kDouble).mean(0);
  double chi_square = 0;
  for (int64_t grey = 0; grey < 256; ++grey) {
    const double p = static_cast<double>(grey) / 255, found = mean[grey].item<double>();
    const double variance = p * (1 - p) / kRows;
    EXPECT_NEAR(found, p, 5 * std::sqrt(variance)) << grey;  // exact at black and white
    if (variance > 0) chi_square += (found - p) * (found - p) / variance;
  }
  EXPECT_NEAR(chi_square, 254, 5 * std::sqrt(2.0 * 254));
}

TEST_P(DrawnBinarisation, PixelsAreIndependent) {
  constexpr int64_t kRows = 4000, kCols = 50;
  const at::Tensor x = binarised(GetParam(), at::full({kRows, kCols}, 128, at::kByte));
  const at::Tensor centred = (x - x.mean()).to(at::kDouble);
  const double variance = centred.square().mean().item<double>();
  const auto correlation = [&](const at::Tensor& a, const at::Tensor& b) {
    return (a * b).mean().item<double>() / variance;
  };
  const double tolerance = 5 / std::sqrt(static_cast<double>(kRows * kCols));
  EXPECT_NEAR(correlation(centred.slice(1, 1), centred.slice(1, 0, -1)), 0, tolerance);
  EXPECT_NEAR(correlation(centred.slice(0, 1), centred.slice(0, 0, -1)), 0, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Both, DrawnBinarisation, ::testing::Values("dynamic", "static:3"),
                         [](const auto& tested) {
                           return tested.param.substr(0, tested.param.find(':'));
                         });

TEST(Binarisation, StaticDependsOnSeedAndFileIndexAlone) {
  const at::Tensor pixels = ramp(10);
  const at::Tensor whole = binarised("static:3", pixels);
  EXPECT_TRUE(at::equal(whole, binarised("static:3", pixels, 0, 99)));
  EXPECT_TRUE(at::equal(whole.slice(0, 4, 7), binarised("static:3", pixels.slice(0, 4, 7), 4)));
  EXPECT_FALSE(at::equal(whole[0], whole[1]));
  EXPECT_FALSE(at::equal(whole, binarised("static:4", pixels)));
  EXPECT_FALSE(at::equal(whole, binarised("static:3", pixels, 1)));
  // Strided pixels mean the same as a copy.
  const at::Tensor left = pixels.slice(1, 0, 128);
  EXPECT_TRUE(at::equal(binarised("static:3", left), binarised("static:3", left.contiguous())));
}

TEST(Binarisation, StaticNeverChanges) {
  // Results of other days depend on these very bits (recomputed in Python).
  const at::Tensor x = binarised("static:1", at::full({2, 8}, 128, at::kByte), 41);
  std::string bits;
  for (int64_t i = 0; i < 16; ++i) bits += x.flatten()[i].item<float>() > 0 ? '1' : '0';
  EXPECT_EQ(bits, "1000100010110110");
}

TEST(Binarisation, DynamicDrawsAnewFromItsGenerator) {
  const at::Tensor pixels = ramp(10);
  EXPECT_TRUE(at::equal(binarised("dynamic", pixels, 0, 5), binarised("dynamic", pixels, 3, 5)));
  EXPECT_FALSE(at::equal(binarised("dynamic", pixels, 0, 5), binarised("dynamic", pixels, 0, 6)));
  at::Generator generator = make_generator(5);
  const Binarisation dynamic = parse_binarisation("dynamic");
  const at::Tensor first = binarise(dynamic, pixels, 0, generator);
  EXPECT_FALSE(at::equal(first, binarise(dynamic, pixels, 0, generator)));
}

TEST(Binarisation, ThresholdIsStrict) {
  const at::Tensor x = binarised("threshold:127", ramp(2));
  EXPECT_EQ(x[0][127].item<float>(), 0);
  EXPECT_EQ(x[0][128].item<float>(), 1);
  EXPECT_EQ(x[1].sum().item<float>(), 128);
}

TEST(Binarisation, NoneKeepsTheGreyLevels) {
  const at::Tensor x = binarised("none", ramp(1));
  EXPECT_EQ(x[0][0].item<float>(), 0);
  EXPECT_EQ(x[0][255].item<float>(), 1);
  EXPECT_FLOAT_EQ(x[0][51].item<float>(), 0.2F);
}

TEST(Binarisation, AmatWantsBinaryPixels) {
  const at::Tensor x = binarised("amat", ramp(1).index_select(1, at::tensor({0, 255, 255})));
  EXPECT_TRUE(at::equal(x, at::tensor({0.F, 1.F, 1.F}).reshape({1, 3})));
  expect_error(ErrorKind::kData, {"amat", "grey"}, [] { binarised("amat", ramp(1)); });
}

}  // namespace
}  // namespace crais
