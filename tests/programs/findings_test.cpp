#include "programs/reproduce/findings.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

at::Tensor seeds(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

double loss_against_zero(const at::Tensor& reported) {
  return std::abs(reported.mean().item<double>());
}

TEST(Choice, ChoosesOnTheFirstSeedsAndTheOracleOnTheOthers) {
  // The second is highest on the first two seeds, the third on the reporting ones and the nearest.
  const Choice choice =
      choose({seeds({-3, -3, -1, -1}), seeds({-1, -1, -3, -3}), seeds({-2, -2, -0.5, 0.25})}, 2,
             loss_against_zero);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, 2U);
}

TEST(Choice, PassesOverWhatFailed) {
  const Choice choice = choose({seeds({NAN}), seeds({-5, -5})}, 1, loss_against_zero);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, 1U);
  const Choice none = choose({seeds({NAN}), seeds({NAN})}, 1, loss_against_zero);
  EXPECT_EQ(none.chosen, Choice::kNone);
  EXPECT_EQ(none.oracle, Choice::kNone);
}

TEST(Choice, HasNoOracleWithoutATruth) {
  const Choice choice = choose({seeds({-5, -5}), seeds({-4, -6})}, 1);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, Choice::kNone);
}

TEST(Choice, TakesMeansOverProblems) {
  const at::Tensor first = at::tensor({0.0, -10.0, -4.0, -4.0}, at::kDouble).view({2, 2});
  const at::Tensor second = at::tensor({-4.0, -4.0, 0.0, -1.0}, at::kDouble).view({2, 2});
  const Choice choice = choose({first, second}, 1, loss_against_zero);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, 1U);
}

TEST(AtLength, SaysWhereTheLengthIsAnother) {
  EXPECT_EQ(at_length(-0.714, 2, 49, 64).text, "-0.71 (M = 49)");
  EXPECT_EQ(at_length(-0.714, 2, 63, 64).text, "-0.71");
  EXPECT_EQ(at_length(-0.714, 2, 63, 64).value, -0.714);
}

TEST(AlongPlan, KeepsBothEnds) {
  for (const size_t count : {2u, 5u, 399u, 401u, 6001u}) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = double(i);
    const Series series = along_plan("name", values);
    EXPECT_LE(series.x.size(), 402u);
    EXPECT_EQ(series.x.front(), 0);
    EXPECT_EQ(series.x.back(), 1);
    EXPECT_EQ(series.y.back(), double(count - 1));
    for (size_t i = 1; i < series.x.size(); ++i) EXPECT_GT(series.x[i], series.x[i - 1]);
  }
}

TEST(TargetErrors, AreOfTheSpread) {
  const TargetErrors e(at::tensor({1.0, 2.5, 4.0}, at::kDouble), 2.0);
  EXPECT_NEAR(e.bias, 0.5, 1e-15);
  EXPECT_NEAR(e.std_error, std::sqrt(2.25 / 3), 1e-14);
  EXPECT_NEAR(e.absolute, 3.5 / 3, 1e-15);
  EXPECT_NEAR(e.root_mean_square, std::sqrt(5.25 / 3), 1e-15);
}

TEST(Rows, BecomeATable) {
  const testing::TemporaryFolder folder;
  Page page(folder.path(), "Rows");
  ::testing::internal::CaptureStdout();
  add_table(page, "rows", "Rows",
            {{{"variant", "a"}, {"error", number(0.25, 1)}, {"paper", with_spread(NAN, NAN, 1)}},
             {{"variant", "b"}, {"error", number(NAN, 1)}, {"paper", with_spread(2, 0.5, 1)}}});
  ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(read_file(folder.path() / "rows.csv"),
            "variant,error,paper\na,0.25,-\nb,-,2.0 +- 0.5\n");
}

TEST(SeriesNamed, IsOneForEachName) {
  Plot plot = axes("title", "x", "y");
  series_named(plot, "a").add(1, 2, 0.1);
  series_named(plot, "b").add(1, 3, 0.1);
  series_named(plot, "a").add(2, 1, 0.1);
  ASSERT_EQ(plot.series.size(), 2U);
  EXPECT_EQ(plot.series[0].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(plot.series[1].y, (std::vector<double>{3}));
}

}  // namespace
}  // namespace crais
