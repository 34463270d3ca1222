// Pilots and plans.
#include "samplers/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::max_abs_diff;

std::unique_ptr<ScheduleRule> schedule_rule(const std::string& spec, int64_t steps = 64) {
  ScheduleOptions options{.steps = steps};
  return ScheduleRegistry::instance().make("schedule", spec, options);
}

std::unique_ptr<Transition> kernel(int64_t num_leapfrog = 1) {
  return TransitionRegistry::instance().make("kernel", "hmc", {num_leapfrog});
}

const Path& geometric() {
  static const auto kPath = PathRegistry::instance().make("path", "geometric");
  return *kPath;
}

at::Tensor columns(const std::vector<std::vector<double>>& values) {
  std::vector<at::Tensor> all;
  all.reserve(values.size());
  for (const auto& column : values) all.push_back(at::tensor(column, at::kDouble));
  return at::stack(all, 1);
}

TEST(Interpolate, IsLinearInTheFractionOfSteps) {
  const Plan plan{columns({{0, 0.1, 0.5, 1}}), columns({{1.0, 0.5, 0.125}})};
  const Plan longer = interpolate(plan, 6);
  EXPECT_LT(max_abs_diff(longer.betas, columns({{0, 0.05, 0.1, 0.3, 0.5, 0.75, 1}})), 1e-14);
  // Log-linear in beta between the temperatures at which they were found.
  const std::vector<double> expected = {1.0, 1.0, std::sqrt(0.5), 0.5, 0.25, 0.125};
  EXPECT_LT(max_abs_diff(longer.step_sizes, columns({expected})), 1e-13);
  const Plan shorter = interpolate(plan, 1);
  EXPECT_LT(max_abs_diff(shorter.betas, columns({{0, 1}})), 1e-15);
  EXPECT_LT(max_abs_diff(shorter.step_sizes, columns({{0.125}})), 1e-15);
}

TEST(Interpolate, DoesNotStretchThePadding) {
  const Plan plan{columns({{0, 0.2, 1, 1, 1}, {0, 0.1, 0.2, 0.6, 1}}),
                  columns({{0.4, 0.2, 9, 9}, {0.8, 0.4, 0.2, 0.1}})};
  const Plan stretched = interpolate(plan, 8);
  const std::vector<double> first = {0, 0.05, 0.1, 0.15, 0.2, 0.4, 0.6, 0.8, 1};
  EXPECT_LT(max_abs_diff(stretched.betas.select(1, 0), at::tensor(first, at::kDouble)), 1e-14);
  EXPECT_LT(stretched.step_sizes.select(1, 0).max().item<double>(), 0.41);
  EXPECT_NEAR(stretched.step_sizes[7][0].item<double>(), 0.2, 1e-14);
  EXPECT_GT(stretched.betas.diff(1, 0).min().item<double>(), 0);
  EXPECT_TRUE((stretched.betas[8] == 1).all().item<bool>());
}

TEST(Tune, ReachesTheAcceptanceItAimsAt) {
  const int64_t problems = 50;
  const DiagonalGaussian target(problems, {1.0, -0.5, 0.3}, {0.05, 0.3, 1.0}, 0);
  const Problem problem(borrow(target), AffineMap::identity(problems, 3, at::kDouble));
  for (const double aim : {0.0, 0.9}) {
    PilotOptions options{.initial_step_size = 3.0, .target_acceptance = aim};
    at::Generator rng = make_generator(2);
    const Plan plan =
        run_pilot(problem, geometric(), *schedule_rule("geometric", 150), *kernel(), options, rng)
            .plan;
    const AnnealResult run = anneal(problem, geometric(), plan, *kernel(), 16, rng);
    const double expected = aim > 0 ? aim : kernel()->target_acceptance();
    EXPECT_NEAR(run.accept_prob.slice(0, 40).mean().item<double>(), expected, 0.03);
    // The end is narrower than the beginning.
    EXPECT_LT(plan.step_sizes[149][0].item<double>(), 0.5 * plan.step_sizes[10][0].item<double>());
  }
}

TEST(Tune, KeepsAGivenStepSize) {
  const DiagonalGaussian target(3, {1.0}, {0.5}, 0);
  const Problem problem(borrow(target), AffineMap::identity(3, 1, at::kDouble));
  PilotOptions options{.step_size = 0.37};
  at::Generator rng = make_generator(3);
  const Plan plan =
      run_pilot(problem, geometric(), *schedule_rule("cess:0.9"), *kernel(), options, rng).plan;
  EXPECT_TRUE((plan.step_sizes == 0.37).all().item<bool>());
  EXPECT_EQ(plan.betas.size(1), 1);
  options.interpolate = 17;
  EXPECT_EQ(run_pilot(problem, geometric(), *schedule_rule("cess:0.9"), *kernel(), options, rng)
                .plan.num_steps(),
            17);
}

/// An easy problem and a hard one.
DiagonalGaussian unequal(int64_t copies) {
  return {columns({{0.2, 2.0}, {0.1, -1.0}}).repeat({copies, 1}),
          columns({{0.9, 0.3}, {1.1, 0.4}}).repeat({copies, 1}),
          at::tensor({1.0, -2.0}, at::kDouble).repeat({copies})};
}

TEST(Tune, MayPlanForEachProblem) {
  const DiagonalGaussian pair = unequal(1);
  const Problem problem(borrow(pair), AffineMap::identity(2, 2, at::kDouble));
  for (const char* spec : {"cess:0.9", "constant-rate:0.1"}) {
    PilotOptions options{.num_particles = 400, .shared = false};
    at::Generator rng = make_generator(4);
    const Plan plan =
        run_pilot(problem, geometric(), *schedule_rule(spec), *kernel(), options, rng).plan;
    ASSERT_EQ(plan.betas.size(1), 2);
    const at::Tensor length = (plan.betas < 1).sum(0);
    EXPECT_LT(length[0].item<int64_t>() + 3, length[1].item<int64_t>()) << spec;

    // Its columns, dealt to many copies of the pair.
    const int64_t copies = 200;
    const Plan dealt{plan.betas.repeat({1, copies}), plan.step_sizes.repeat({1, copies})};
    const DiagonalGaussian target = unequal(copies);
    const Problem many(borrow(target), AffineMap::identity(2 * copies, 2, at::kDouble));
    const AnnealResult run = anneal(many, geometric(), dealt, *kernel(), 8, rng);
    const at::Tensor ratio =
        (log_mean_exp(run.log_w) - *target.true_log_normalizer()).exp().view({copies, 2});
    EXPECT_LT(testing::z_scores(ratio, at::ones({}, at::kDouble)).abs().max().item<double>(), 5)
        << spec;
    EXPECT_TRUE(at::equal(run.betas, dealt.betas)) << spec;
    EXPECT_EQ(run.cost.gradients, 2 * copies * 8 * (1 + plan.num_steps()));
  }
}

TEST(Tune, GivesUpAfterMaxSteps) {
  const DiagonalGaussian target(2, {3.0}, {0.2}, 0);
  const Problem problem(borrow(target), AffineMap::identity(2, 1, at::kDouble));
  PilotOptions options{.max_steps = 5};
  at::Generator rng = make_generator(5);
  expect_error(ErrorKind::kArgument, {"after 5 steps", "`max_steps`", "beta = "}, [&] {
    run_pilot(problem, geometric(), *schedule_rule("constant-rate:0.001"), *kernel(), options, rng);
  });
  // A known schedule is as long as it is.
  EXPECT_EQ(run_pilot(problem, geometric(), *schedule_rule("linear", 9), *kernel(), options, rng)
                .plan.num_steps(),
            9);
}

}  // namespace
}  // namespace crais
