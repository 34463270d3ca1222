// Paths of steepest descent as pilots learn them: what particles make of them, noise and all.
#include "samplers/path_pilot.h"

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
  ScheduleOptions options;
  options.steps = steps;
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
  PilotOptions options;
  options.num_particles = 8;
  uint64_t seed = 0;
  for (const auto& [rule, move] :
       {std::pair{"linear", "hmc"}, {"constant-length:0.4", "ghmc:0.8"}, {"cess:0.8", "mala"}}) {
    at::Generator rng = make_generator(++seed);
    const auto transition = kernel(move);
    const PilotRun tuned = run_pilot(pilot, *path_, *schedule(rule), *transition, options, rng);
    ASSERT_NE(tuned.plan.path, nullptr);
    EXPECT_EQ(tuned.plan.path->constants().step.size(1), 1);
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
  constexpr int64_t kProblems = 300;
  const LogGamma target(kProblems, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(kProblems, 2, at::kDouble));
  const auto resampling = ResamplingRegistry::instance().make("resampling", "systematic:0.7");
  PilotOptions options;
  options.num_particles = 24;
  options.shared = false;
  options.resampling = resampling.get();
  at::Generator rng = make_generator(7);
  const auto hmc = kernel("hmc");
  const PilotRun tuned = run_pilot(problem, *path_, *schedule("linear", 10), *hmc, options, rng);
  EXPECT_EQ(tuned.plan.path->constants().step.size(1), kProblems);
  const AnnealResult run = anneal(problem, *path_, tuned.plan, *hmc, 8, rng, resampling.get());
  EXPECT_GT(run.genealogy.num_resamplings.sum().item<double>(), 0);
  const at::Tensor ratio = (log_mean_exp(run.log_w) - *target.true_log_normalizer()).exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 4.5);
  EXPECT_LT(testing::std_error(ratio), 0.1);
}

/// In the plane, by particles: as many steps of constant rate as D_f / delta says.
TEST_P(LearnedPaths, LoseDeltaAStepInThePlane) {
  const DiagonalGaussian target(8, {0.8, -0.4}, {0.6, 0.9}, 0.7);
  const Problem problem(borrow(target), AffineMap::identity(8, 2, at::kDouble));
  // D_f(pi || q0) by exact draws of the base.
  at::Generator rng = make_generator(3);
  const Particles base = problem.start(100'000, rng);
  const at::Tensor log_u = base.log_gamma - base.log_q0 - 0.7;
  const double whole = path_->divergence().f(log_u).mean().item<double>();
  PilotOptions options;
  options.num_particles = 400;
  std::ostringstream spec;
  spec << "constant-rate:" << whole / 60;
  const PilotRun pilot = run_pilot(problem, *testing::descent_path(GetParam() + ",length=0.1"),
                                   *schedule(spec.str()), *kernel("hmc"), options, rng);
  const at::Tensor divergence = pilot.plan.divergence.squeeze(1);
  EXPECT_NEAR(divergence[0].item<double>(), whole, 0.1 * whole);
  EXPECT_NEAR(divergence[-1].item<double>(), 0, 1e-12);
  // The first 45 of 60 steps: then V is so small that steps are at their longest.
  const double slope = (divergence[45] - divergence[0]).item<double>() / (45 * whole / 60);
  EXPECT_NEAR(slope, -1, 0.12);
}

TEST(LearnPath, RepeatsItselfByTheByteAndCountsItsCost) {
  const LogGamma inner(4, {3.0, 4.0});
  const testing::Counting target(inner);
  const Problem problem(borrow(target), AffineMap::identity(4, 2, at::kDouble));
  const auto path = testing::descent_path("f:jensen-shannon");
  const auto learn = [&](uint64_t seed) {
    at::Generator rng = make_generator(seed);
    return learn_path(problem, *path, *kernel("ghmc:0.8"), {}, rng);
  };
  const LearnedPath first = learn(1);
  EXPECT_EQ(target.gradients, first.cost.gradients);
  EXPECT_EQ(first.cost.gradients % (4 * 16), 0);
  const LearnedPath second = learn(1), other = learn(2);
  EXPECT_TRUE(at::equal(first.path->constants().step, second.path->constants().step));
  EXPECT_FALSE(at::equal(first.path->constants().step.slice(0, 0, 1),
                         other.path->constants().step.slice(0, 0, 1)));
  // Its tables are those of its constants.
  const auto again = path->with(first.path->constants());
  const at::Tensor x = at::linspace(-20, 20, 81, at::kDouble).unsqueeze(0);
  for (const double beta : {0.2, 0.5, 0.93}) {
    const at::Tensor at_beta = at::full({1, 1}, beta, at::kDouble);
    EXPECT_TRUE(at::equal(again->at(at_beta, at::zeros_like(x), x).log_density,
                          first.path->at(at_beta, at::zeros_like(x), x).log_density));
  }
}

TEST(LearnPath, SaysHowFarItCame) {
  const DiagonalGaussian target(2, std::vector<double>(20, 3.0), std::vector<double>(20, 0.1), 0);
  const Problem problem(borrow(target), AffineMap::identity(2, 20, at::kDouble));
  at::Generator rng = make_generator(1);
  expect_error(ErrorKind::kArgument,
               {"f:jensen-shannon,knots=4", "not arrived after 4 steps", "`path`"}, [&] {
                 learn_path(problem, *testing::descent_path("f:jensen-shannon,knots=4"),
                            *kernel("hmc"), {}, rng);
               });
}

TEST(LearnPath, GoesWithThePlanInBlocks) {
  const LogGamma target(5, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(5, 2, at::kDouble));
  PilotOptions options;
  options.shared = false;
  at::Generator rng = make_generator(4);
  const auto path = testing::descent_path("f:jensen-shannon");
  const Plan plan =
      run_pilot(problem, *path, *schedule("linear", 5), *kernel("hmc"), options, rng).plan;
  const at::Tensor index = at::tensor({3, 1}, at::kLong);
  const Plan part = select(plan, index);
  EXPECT_TRUE(
      at::equal(part.path->constants().step, plan.path->constants().step.index_select(1, index)));
  EXPECT_EQ(interpolate(plan, 9).path, plan.path);
}

}  // namespace
}  // namespace crais
