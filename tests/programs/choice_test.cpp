#include "programs/reproduce/choice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
  const Choice choice = choose({at::Tensor(), seeds({-5, -5})}, 1, loss_against_zero);
  EXPECT_EQ(choice.chosen, 1U);
  EXPECT_EQ(choice.oracle, 1U);
  const Choice none = choose({at::Tensor(), at::Tensor()}, 1, loss_against_zero);
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

}  // namespace
}  // namespace crais
