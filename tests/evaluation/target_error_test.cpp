#include "evaluation/target_error.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
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

TEST(ChainsFor, StaysWithinItsBounds) {
  EXPECT_EQ(chains_for({16, 1e-6, 1e-12}, 0.1, 16, 1000), 16);
  EXPECT_EQ(chains_for({16, 5.0, 30.0}, 0.01, 16, 1000), 1000);
  EXPECT_EQ(chains_for({16, 5.0, 30.0}, 0.01, 16, 1), 2);
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
  const TargetedRun found = estimate_to_error(parts, *parts.methods[0], problem, plan, rng);
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

}  // namespace
}  // namespace crais
