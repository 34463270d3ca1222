#include "evaluation/target_error.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "evaluation/log_normalizer.h"
#include "support/expect_error.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;

TEST(ChainsFor, BringErrorAndBiasBelowWithHalfToSpare) {
  for (const double error : {0.3, 0.1, 0.01, 2.0}) {
    for (const double variance : {0.01, 0.5, 3.0}) {
      // A pilot whose error is that of lognormal weights.
      const double relative = std::expm1(variance);
      const PilotWeights pilot{16, std::sqrt(relative / 16), variance};
      const auto chains =
          static_cast<double>(chains_for(pilot, error, /*fewest=*/2, /*most=*/1 << 30));
      EXPECT_LE(std::sqrt(2 * relative / chains), error) << error << " " << variance;
      EXPECT_LE(2 * relative / (2 * chains), error) << error << " " << variance;
      if (chains > 2) {
        EXPECT_TRUE(std::sqrt(4 * relative / chains) > error ||
                    4 * relative / (2 * chains) > error);
      }
    }
  }
}

TEST(ChainsFor, DistrustsAPilotWhoseWeightsSpreadMoreThanItsErrorSays) {
  const PilotWeights calm{8, 0.1, 0.08}, lucky{8, 0.1, 4.0};
  EXPECT_GT(chains_for(lucky, 0.1, 2, 1 << 20), 8 * chains_for(calm, 0.1, 2, 1 << 20));
}

/// Two problems, one from its own base and one far from it.
TEST(TargetedRun, GivesEachProblemItsOwnChains) {
  EstimateOptions options;
  options.target_error = 0.05;
  options.max_evaluations = 4000;
  options.steps = 4;
  options.step_size = 0.5;
  const EstimatorParts parts(options);
  const at::Tensor mean = at::tensor({0.0, 0.0, 2.5, 0.0}, at::kDouble).view({2, 2});
  const at::Tensor sd = at::tensor({1.0, 1.0, 0.3, 1.0}, at::kDouble).view({2, 2});
  const DiagonalGaussian target(mean, sd, at::tensor({0.5, -0.5}, at::kDouble));
  const Problem problem(borrow(target), AffineMap::identity(2, 2, at::kDouble));
  Plan plan = freeze(*parts.rule, 0.5);
  plan.num_particles = 8;
  at::Generator rng = make_generator(3);
  const TargetedRun found = estimate_to_error(parts, *parts.methods[0], problem, plan, {}, rng);
  ASSERT_EQ(found.run.log_normalizer.size(), 2u);
  EXPECT_NEAR(found.run.log_normalizer[0], 0.5, 1e-12);
  EXPECT_EQ(found.run.evaluations[0], 8 * (1 + 4));
  EXPECT_GT(found.run.evaluations[1], 8 * 8 * (1 + 4));
  EXPECT_LE(found.run.evaluations[1], 4000);
  EXPECT_EQ(found.run.flags[0] & kMissedTarget, 0);
  EXPECT_EQ(found.run.flags[1] & kMissedTarget, kMissedTarget);
  EXPECT_EQ(found.tuning, Cost::with_gradient(2 * 8 * (1 + 4)));
  EXPECT_EQ(static_cast<double>(found.run.cost.densities),
            found.run.evaluations[0] + found.run.evaluations[1]);
}

/// 320 problems whose weights spread from nothing to twice their mean.
const DiagonalGaussian& uneven() {
  static const at::Tensor kIndex = at::arange(320, at::kDouble).unsqueeze(1);
  static const DiagonalGaussian kTarget(at::cat({0.005 * kIndex, 0 * kIndex}, 1),
                                        at::full({320, 2}, 0.8, at::kDouble),
                                        0.01 * kIndex.squeeze(1));
  return kTarget;
}

EstimateOptions for_the_mean(double error) {
  EstimateOptions options;
  options.base = "prior";
  options.steps = 4;
  options.step_size = 0.3;
  options.mean_error = error;
  return options;
}

/// The error of the mean from chains and bias, as the estimates claim it.
double error_of_mean(const Result& found) {
  const auto count = static_cast<double>(found.value.numel());
  return std::hypot(found.std_error.norm().item<double>() / count,
                    found.bias.mean().item<double>());
}

TEST(MeanError, IsWhatTheMeanHas) {
  const auto target = uneven().select(at::randperm(320, make_generator(1), at::kLong));
  const double truth = 0.01 * 319 / 2;
  for (const double asked : {0.05, 0.02}) {
    SCOPED_TRACE(asked);
    double squares = 0, claimed = 0;
    constexpr int kReplicates = 6;
    for (int seed = 0; seed < kReplicates; ++seed) {
      EstimateOptions options = for_the_mean(asked);
      options.seed = static_cast<uint64_t>(seed);
      const Result found = estimate_log_normalizer(*target, options);
      const double error = found.value.mean().item<double>() - truth;
      squares += error * error / kReplicates;
      claimed += error_of_mean(found) / kReplicates;
    }
    EXPECT_LT(claimed, 1.2 * asked);
    EXPECT_GT(claimed, 0.5 * asked);
    // Six of them: a root mean square above 2 has a chance of one in 3,000.
    EXPECT_LT(std::sqrt(squares), 2 * asked);
  }
}

/// Chains where they help: one problem in eight is hard, the others are their bases.
TEST(MeanError, SpendsChainsOnTheProblemsThatNeedThem) {
  const at::Tensor hard = (at::arange(320, at::kLong).remainder(8) == 0).to(at::kDouble);
  const DiagonalGaussian target(at::stack({1.6 * hard, 0 * hard}, 1),
                                at::stack({1 - 0.2 * hard, 1 - 0.2 * hard}, 1), 0 * hard);
  const Result found = estimate_log_normalizer(target, for_the_mean(0.005));
  ASSERT_TRUE(found.run.state.by_spread);
  EXPECT_LT(error_of_mean(found), 1.3 * 0.005);
  const auto evaluations = to_column(tables(found.run).front().matrix("evaluations")[0]);
  for (size_t i = 0; i < evaluations.size(); ++i) {
    if (i % 8 == 0) {
      EXPECT_GT(evaluations[i], 8 * 5 * 4) << i;
    } else {
      EXPECT_EQ(evaluations[i], 4 * 5) << i;
    }
  }
}

TEST(MeanError, GivesAllAsManyWherePilotsWouldCostMore) {
  const DiagonalGaussian target(at::full({320, 2}, 0.8, at::kDouble),
                                at::full({320, 2}, 0.8, at::kDouble),
                                at::zeros({320}, at::kDouble));
  const Result found = estimate_log_normalizer(target, for_the_mean(0.02));
  EXPECT_FALSE(found.run.state.by_spread);
  const int64_t chains = found.run.state.plan->num_particles;
  EXPECT_GT(chains, 4);
  EXPECT_EQ(found.summary.evaluations, static_cast<double>(chains * 5));
  EXPECT_LT(error_of_mean(found), 1.3 * 0.02);
  EXPECT_GT(error_of_mean(found), 0.5 * 0.02);
}

TEST(MeanError, ExcludesOtherWaysToChooseChains) {
  EstimateOptions options = for_the_mean(0.1);
  options.target_error = 0.1;
  expect_error(ErrorKind::kArgument, {"`mean_error`", "exclude each other"},
               [&] { check(options); });
  options.target_error.reset();
  options.resampling = "systematic:0.5";
  expect_error(ErrorKind::kArgument, {"`mean_error`", "`resampling`"}, [&] { check(options); });
  options.resampling.clear();
  options.mean_error = -1;
  expect_error(ErrorKind::kArgument, {"`mean_error`", "above 0"}, [&] { check(options); });
}

}  // namespace
}  // namespace crais
