// A budget is kept to, and spent where it helps.
#include "samplers/budget.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/expect_error.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;

TEST(PredictedBias, IsThatOfLognormalWeights) {
  at::Generator rng = make_generator(1);
  for (const double variance : {0.1, 0.5}) {
    const at::Tensor log_w = std::sqrt(variance) * at::randn({40000, 16}, rng, at::kDouble);
    const double truth = variance / 2 - log_mean_exp(log_w).mean().item<double>();
    const at::Tensor s2 = at::full({1}, variance, at::kDouble);
    EXPECT_NEAR(predicted_bias(s2, 16).item<double>() / truth, 1.0, 0.15) << variance;
  }
  // However few the chains, they are no worse than one.
  EXPECT_EQ(predicted_bias(at::full({1}, 30.0, at::kDouble), 4).item<double>(), 15.0);
}

struct Spent {
  Plan plan;
  std::vector<Candidate> candidates;
  double evaluations;  // of each problem, all told
};

Spent spend(double evaluations, int64_t num_problems, double sd, int64_t num_anneals = 1,
            bool bounds_above = false) {
  constexpr int64_t kBaseCost = 7;
  const Budget budget{evaluations, num_problems, num_anneals, kBaseCost, bounds_above};
  const PilotSize size = pilot_size(budget, 1, 16);
  const DiagonalGaussian inner(size.num_problems, std::vector<double>(5, 0.4),
                               std::vector<double>(5, sd), 0.0);
  const Counting target(inner);
  const Problem problem(borrow(target), AffineMap::identity(size.num_problems, 5, at::kDouble));
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  const Cost before{size.num_problems * kBaseCost, 0};
  at::Generator rng = make_generator(2);
  Spent spent;
  const BudgetParts parts{*path,
                          *kernel,
                          [](int64_t steps) {
                            ScheduleOptions options;
                            options.steps = steps;
                            return ScheduleRegistry::instance().make("schedule", "linear", options);
                          },
                          {}};
  const BudgetedPlan found = plan_within(budget, size, problem, before, parts, rng);
  EXPECT_EQ(found.cost, Cost::with_gradient(target.gradients));
  spent.plan = found.plan;
  spent.candidates = found.candidates;
  const auto pilots = static_cast<double>(before.densities + target.gradients);
  spent.evaluations =
      kBaseCost + pilots / static_cast<double>(num_problems) +
      static_cast<double>(num_anneals * spent.plan.num_particles * (1 + spent.plan.num_steps()));
  return spent;
}

TEST(Budget, IsNeverExceededAndNearlyUsed) {
  for (const double evaluations : {200.0, 500.0, 4000.0}) {
    for (const int64_t num_problems : {1, 20, 1000}) {
      for (const int64_t num_anneals : {1, 2}) {
        SCOPED_TRACE(::testing::Message() << evaluations << " " << num_problems);
        const Spent spent = spend(evaluations, num_problems, 0.4, num_anneals);
        EXPECT_LE(spent.evaluations, evaluations);
        const auto chain = static_cast<double>(num_anneals * (1 + spent.plan.num_steps()));
        EXPECT_GT(spent.evaluations, evaluations - chain);
        // One temperature more of every chain would be too much.
        EXPECT_GT(spent.evaluations + static_cast<double>(num_anneals * spent.plan.num_particles),
                  evaluations);
        EXPECT_GE(spent.plan.num_particles, 4);
      }
    }
  }
}

TEST(Budget, BuysTemperaturesWhereTheBaseIsFar) {
  const Spent far = spend(1000, 1000, 0.1);
  EXPECT_GT(far.plan.num_steps(), 8);
  double least = INFINITY, chosen = 0;
  for (const Candidate& c : far.candidates) {
    least = std::min(least, c.predicted_bias);
    if (c.num_particles == far.plan.num_particles) chosen = c.predicted_bias;
  }
  EXPECT_GT(chosen, 0);
  EXPECT_LE(chosen, 1.25 * least);
  EXPECT_GT(far.candidates.size(), 3u);
}

/// Many short chains make a good lower bound; an upper one needs long chains.
TEST(Budget, BuysTemperaturesForAnUpperBound) {
  const Spent lower = spend(1000, 1000, 1.2, 2), both = spend(1000, 1000, 1.2, 2, true);
  EXPECT_GE(both.plan.num_steps(), 2 * lower.plan.num_steps());
  EXPECT_GE(both.plan.num_particles, 2);
}

TEST(Budget, TriesNoPlanThatFillsTheMemory) {
  const PilotSize size = pilot_size({1e15, 3, 1, 50}, 1, 16);
  EXPECT_EQ(size.steps.back(), int64_t{1} << 20);
  EXPECT_EQ(pilot_size({1e4, 3, 1, 50}, 1, 16).steps.back(), 128);  // as without a limit
}

TEST(Budget, SaysHowMuchIsNeeded) {
  expect_error(ErrorKind::kArgument, {"`budget` 60 is too small", "base takes 50"}, [] {
    pilot_size({60, 100, 1, 50}, 1, 16);
  });
  try {
    pilot_size({60, 100, 1, 50}, 1, 16);
  } catch (const BudgetError& error) {
    EXPECT_GT(pilot_size({error.least(), 100, 1, 50}, 1, 16).num_problems, 0);
  }
}

}  // namespace
}  // namespace crais
