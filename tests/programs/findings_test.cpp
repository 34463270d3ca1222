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
  EXPECT_EQ(at_length(-0.714, 2, 63, 64).value.text(), "-0.714");
}

TEST(AlongPlan, KeepsBothEndsAndJoinsTheValues) {
  const Row row = along_plan({{"target", "u1"}}, {0, 0.25, 1});
  ASSERT_EQ(row.size(), 52U);
  EXPECT_EQ(row[0].second.text, "u1");
  EXPECT_EQ(row[1].first + " " + row[1].second.text, "0.00 0.00000");
  EXPECT_EQ(row[14].first + " " + row[14].second.text, "0.26 0.130000");
  EXPECT_EQ(row[51].first + " " + row[51].second.text, "1.00 1.00000");
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
  page.paragraph("Two variants.");
  const std::vector<Row> rows = {
      {{"variant", "a|b"}, {"error", number(0.25, 1)}, {"paper", with_spread(NAN, NAN, 1)}},
      {{"variant", "c"}, {"error", number(NAN, 1)}, {"paper", with_spread(2, 0.5, 1)}}};
  add_table(page, "rows", "Errors", rows);
  add_table(page, "all", "All settings", rows, /*folded=*/true);
  page.finish();
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("All settings: 2 rows in " + (folder.path() / "all.csv").string() + "\n"),
            std::string::npos);
  EXPECT_EQ(read_file(folder.path() / "rows.csv"),
            "variant,error,paper\na|b,0.25,-\nc,-,2.0 +- 0.5\n");
  EXPECT_EQ(read_file(folder.path() / "all.csv"), read_file(folder.path() / "rows.csv"));
  EXPECT_EQ(
      read_file(folder.path() / "tables.md"),
      "# Rows\n\nTwo variants.\n\n## Errors\n\n| variant | error | paper |\n| --- | --- | --- "
      "|\n| a\\|b | 0.2 | - |\n| c | - | 2.0 +- 0.5 |\n\nAll settings: 2 rows in "
      "[all.csv](all.csv)\n");
}

}  // namespace
}  // namespace crais
