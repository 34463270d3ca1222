// A budget is kept to, and spent where it helps.
#include "samplers/budget.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/rng.h"
#include "support/expect_error.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;

struct Spent {
  Plan plan;
  double evaluations;  // of each problem, all told
};

Spent spend(double evaluations, int64_t num_problems, double num_anneals = 1,
            int64_t num_chains = 8) {
  constexpr int64_t kBaseCost = 7;
  const Budget budget{evaluations, num_problems, num_anneals, kBaseCost, num_chains};
  const PilotSize size = pilot_size(budget, 1, 16);
  const DiagonalGaussian inner(size.num_problems, std::vector<double>(5, 0.4),
                               std::vector<double>(5, 0.4), 0.0);
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
                            ScheduleOptions options{.steps = steps};
                            return ScheduleRegistry::instance().make("schedule", "linear", options);
                          },
                          {}};
  const BudgetedPlan found = plan_within(budget, size, problem, before, parts, rng);
  EXPECT_EQ(found.cost, Cost::with_gradient(target.gradients));
  spent.plan = found.plan;
  const auto pilots = static_cast<double>(before.densities + target.gradients);
  spent.evaluations =
      kBaseCost + pilots / static_cast<double>(num_problems) +
      num_anneals * static_cast<double>(spent.plan.num_particles * (1 + spent.plan.num_steps()));
  return spent;
}

TEST(Budget, IsNeverExceededAndNearlyUsed) {
  for (const double evaluations : {200.0, 500.0, 4000.0}) {
    for (const int64_t num_problems : {1, 1000}) {
      for (const auto& [num_anneals, num_chains] : {std::pair{1, 8}, {2, 2}, {1, 5}}) {
        SCOPED_TRACE(::testing::Message()
                     << evaluations << " " << num_problems << " " << num_chains);
        const Spent spent = spend(evaluations, num_problems, num_anneals, num_chains);
        EXPECT_LE(spent.evaluations, evaluations);
        // One temperature more of every chain would be too much.
        EXPECT_GT(spent.evaluations + static_cast<double>(num_anneals * spent.plan.num_particles),
                  evaluations);
        EXPECT_EQ(spent.plan.num_particles, num_chains);
      }
    }
  }
}

/// Pilots are a twentieth of the budget, where that is enough for the least of them.
TEST(Budget, LeavesPilotsATwentieth) {
  for (const double evaluations : {300.0, 2000.0, 1e5})
    for (const int64_t problems : {100, 10'000}) {
      const PilotSize size = pilot_size({evaluations, problems, 1, 50}, 1, 16);
      const auto cost =
          static_cast<double>(size.num_problems * (50 + size.num_particles * (1 + size.steps)));
      EXPECT_LE(cost, 0.05 * evaluations * static_cast<double>(problems));
      EXPECT_GE(size.steps, 4);
    }
}

TEST(Budget, MakesNoPlanThatFillsTheMemory) {
  EXPECT_EQ(spend(2.4e6, 3, 1, 2).plan.num_steps(), int64_t{1} << 20);
}

TEST(Budget, SaysHowMuchIsNeeded) {
  expect_error(ErrorKind::kArgument, {"`budget` 60 is too small", "base takes up to 50"}, [] {
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
