// Paths of steepest descent as pilots learn them: what particles make of them, noise and all.

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "samplers/blocks.h"
#include "support/descent.h"
#include "support/expect_error.h"
#include "support/registered.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;

std::vector<std::string> path_specs() {
  std::vector<std::string> all;
  for (const std::string& example : testing::examples<DivergenceRegistry>())
    all.push_back("f:" + example);
  return all;
}

std::unique_ptr<ScheduleRule> schedule(const std::string& spec, int64_t steps = 12) {
  ScheduleOptions options{.steps = steps};
  return ScheduleRegistry::instance().make("schedule", spec, options);
}

std::unique_ptr<Transition> kernel(const std::string& spec) {
  return TransitionRegistry::instance().make("kernel", spec, {});
}

class LearnedPaths : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const DescentPath> path_ = testing::descent_path(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Every, LearnedPaths, ::testing::ValuesIn(path_specs()),
                         testing::named_by_index_and_spec);

/// Constants from 24 particles in all, weights of fresh ones: E[w] = Z, both ways.
TEST_P(LearnedPaths, LeaveWeightsUnbiasedWhateverThePilot) {
  constexpr int64_t kProblems = 3000;
  const DiagonalGaussian three(3, {0.6, -0.4}, {0.7, 0.8}, 2.5);
  const DiagonalGaussian many(kProblems, {0.6, -0.4}, {0.7, 0.8}, 2.5);
  const Problem pilot(borrow(three), AffineMap::identity(3, 2, at::kDouble));
  const Problem problem(borrow(many), AffineMap::identity(kProblems, 2, at::kDouble));
  PilotOptions options{.num_particles = 8};
  uint64_t seed = 0;
  for (const auto& [rule, move] :
       {std::pair{"linear", "hmc"}, {"constant-length:0.4", "ghmc:0.8"}, {"cess:0.8", "mala"}}) {
    at::Generator rng = make_generator(++seed);
    const auto transition = kernel(move);
    const PilotRun tuned = run_pilot(pilot, *path_, *schedule(rule), *transition, options, rng);
    ASSERT_NE(tuned.plan.path, nullptr);
    EXPECT_EQ(tuned.plan.path->constants.size(1), 1);
    const Plan plan = interpolate(tuned.plan, 7);
    const AnnealResult run = anneal(problem, *path_, plan, *transition, 4, rng);
    const at::Tensor ratio = (log_mean_exp(run.log_w) - 2.5).exp();
    EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 4.5) << rule;
    EXPECT_LT(testing::std_error(ratio), 0.02) << rule;
    const AnnealResult back = anneal_reverse(problem, *path_, plan, *transition, 4, rng);
    const at::Tensor reverse = (log_mean_exp(back.log_w) + 2.5).exp();
    EXPECT_LT(std::abs(testing::z_score(reverse, 1)), 4.5) << rule;
    EXPECT_LT(testing::std_error(reverse), 0.03) << rule;
  }
}

TEST_P(LearnedPaths, ResampleAndPlanForEachProblem) {
  constexpr int64_t kProblems = 80;
  const LogGamma target(kProblems, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(kProblems, 2, at::kDouble));
  const auto resampling = ResamplingRegistry::instance().make("resampling", "systematic:0.7");
  PilotOptions options{.num_particles = 24, .shared = false, .resampling = resampling.get()};
  at::Generator rng = make_generator(7);
  const auto hmc = kernel("hmc");
  const PilotRun tuned = run_pilot(problem, *path_, *schedule("linear", 10), *hmc, options, rng);
  EXPECT_EQ(tuned.plan.path->constants.size(1), kProblems);
  const AnnealResult run = anneal(problem, *path_, tuned.plan, *hmc, 8, rng, resampling.get());
  EXPECT_GT(run.genealogy.num_resamplings.sum().item<double>(), 0);
  const at::Tensor ratio = (log_mean_exp(run.log_w) - *target.true_log_normalizer()).exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 4.5);
  EXPECT_LT(testing::std_error(ratio), 0.2);
}

TEST(LearnPath, SaysHowFarItCame) {
  const DiagonalGaussian target(2, std::vector<double>(20, 3.0), std::vector<double>(20, 0.1), 0);
  const Problem problem(borrow(target), AffineMap::identity(2, 20, at::kDouble));
  at::Generator rng = make_generator(1);
  expect_error(ErrorKind::kArgument,
               {"f:jensen-shannon,knots=4", "not arrived after 4 steps", "`path`"}, [&] {
                 try {
                   run_pilot(problem, *testing::descent_path("f:jensen-shannon,knots=4"),
                             *schedule("linear", 8), *kernel("hmc"), {}, rng);
                 } catch (const ScheduleError& error) {
                   EXPECT_EQ(error.spent, (1 + 4) * problem.cost_of(16));
                   throw;
                 }
               });
}

TEST(LearnPath, GoesWithThePlanInBlocks) {
  const LogGamma target(5, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(5, 2, at::kDouble));
  PilotOptions options{.shared = false};
  at::Generator rng = make_generator(4);
  const auto path = testing::descent_path("f:jensen-shannon");
  const Plan plan =
      run_pilot(problem, *path, *schedule("linear", 5), *kernel("hmc"), options, rng).plan;
  const at::Tensor index = at::tensor({3, 1}, at::kLong);
  const Plan part = select(plan, index);
  EXPECT_TRUE(at::equal(part.path->constants, plan.path->constants.index_select(1, index)));
  EXPECT_EQ(interpolate(plan, 9).path, plan.path);
}

}  // namespace
}  // namespace crais
