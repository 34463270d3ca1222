// E[Zhat] = Z under a frozen plan, for every schedule x path x base x kernel.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/method.h"
#include "samplers/importance.h"
#include "samplers/plan.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "support/temporary_folder.h"
#include "targets/function_target.h"
#include "util/error.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;
using testing::LogGamma;
using testing::TemporaryFolder;

constexpr int64_t kReplicates = 400, kParticles = 8;

struct Base {
  std::string name;
  AffineMap map;
};

std::vector<Base> bases(int64_t num_problems) {
  const at::Tensor loc = at::tensor({0.3, 0.2}, at::kDouble).repeat({num_problems, 1});
  const at::Tensor diagonal = at::tensor({0.9, 1.3}, at::kDouble).repeat({num_problems, 1});
  const at::Tensor lower =
      at::tensor({0.9, 0.0, -0.4, 1.2}, at::kDouble).view({2, 2}).repeat({num_problems, 1, 1});
  return {{"identity", AffineMap::identity(num_problems, 2, at::kDouble)},
          {"diagonal", {loc, diagonal}},
          {"triangular", {loc, lower}}};
}

std::unique_ptr<Target> make_target(const std::string& name, int64_t num_problems) {
  if (name == "gaussian")
    return std::make_unique<DiagonalGaussian>(num_problems, std::vector<double>{0.8, -0.4},
                                              std::vector<double>{0.7, 0.9}, 2.5);
  return std::make_unique<LogGamma>(num_problems, std::vector<double>{3.0, 4.0});
}

std::vector<std::string> schedule_specs(const TemporaryFolder& folder) {
  std::vector<std::string> all;
  for (const auto& [name, entry] : ScheduleRegistry::instance().entries())
    all.push_back(name == "file" ? "file:" + folder.file("f", "0\n0.05\n0.2\n0.3\n0.8\n1\n")
                                 : entry.example);
  return all;
}

struct Outcome {
  at::Tensor ratio;  // [P] of Zhat / Z
  int64_t num_steps;
};

/// A pilot on seed 1000 + seed, an estimate on `seed`.
Outcome estimate(const Target& target, const AffineMap& base, const std::string& schedule,
                 const std::string& path_spec, const Transition& kernel, uint64_t seed) {
  const auto path = PathRegistry::instance().make("path", path_spec);
  ScheduleOptions schedule_options{.steps = 6, .max_step = 0.3};
  const auto rule = ScheduleRegistry::instance().make("schedule", schedule, schedule_options);
  PilotOptions pilot_options{.num_particles = 4};
  const Counting counted(target);
  const Problem pilot(borrow(target), base), problem(borrow(counted), base);
  at::Generator pilot_rng = make_generator(1000 + seed), rng = make_generator(seed);
  const Plan plan = run_pilot(pilot, *path, *rule, kernel, pilot_options, pilot_rng).plan;
  const AnnealResult run = anneal(problem, *path, plan, kernel, kParticles, rng);
  EXPECT_EQ(counted.gradients, base.num_problems() * kParticles *
                                   (1 + kernel.evaluations_per_step() * plan.num_steps()));
  EXPECT_EQ(run.cost, Cost::with_gradient(counted.gradients));
  return {(log_mean_exp(run.log_w) - *target.true_log_normalizer()).exp(), plan.num_steps()};
}

TEST(Unbiased, ForEveryScheduleAndPathAndBase) {
  const TemporaryFolder folder;
  uint64_t seed = 0;
  const auto target = make_target("skewed", kReplicates);
  for (const auto& [base_name, base] : bases(kReplicates)) {
    for (const char* path : {"geometric", "power:0.5", "power:1"}) {
      for (const auto& schedule : schedule_specs(folder)) {
        SCOPED_TRACE("base " + base_name + ", path " + path + ", schedule " + schedule);
        const bool persistent = ++seed % 2;
        const auto kernel = TransitionRegistry::instance().make(
            "kernel", persistent ? "ghmc:0.8" : "hmc", {persistent ? 1 : 2});
        const Outcome found = estimate(*target, base, schedule, path, *kernel, seed);
        EXPECT_LT(std::abs(testing::z_score(found.ratio, 1)), 5);
        EXPECT_LT(testing::std_error(found.ratio), 0.06);
        EXPECT_GT(found.num_steps, 2);
      }
    }
  }
}

TEST(Unbiased, ForOtherOrders) {
  const DiagonalGaussian target(kReplicates, {0.4, -0.3}, {0.8, 0.9}, -1.5);
  const AffineMap base = AffineMap::identity(kReplicates, 2, at::kDouble);
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  for (const char* path : {"power:-0.5", "power:0.25", "power:2"}) {
    const Outcome found = estimate(target, base, "linear", path, *kernel, 5);
    EXPECT_LT(std::abs(testing::z_score(found.ratio, 1)), 5) << path;
    EXPECT_LT(testing::std_error(found.ratio), 0.06) << path;
  }
}

TEST(Importance, IsExactFromTheTargetItself) {
  const at::Tensor mean = at::tensor({0.8, -0.4}, at::kDouble).repeat({3, 1});
  const at::Tensor sd = at::tensor({0.7, 0.9}, at::kDouble).repeat({3, 1});
  const DiagonalGaussian target(mean, sd, at::tensor({2.0, 0.0, -3.0}, at::kDouble));
  const Problem problem(borrow(target), AffineMap(mean, sd));
  at::Generator rng = make_generator(12);
  const at::Tensor log_w = importance_log_weights(problem, 10, rng).log_w;
  EXPECT_LT(testing::max_abs_diff(log_w, target.true_log_normalizer()->unsqueeze(1)), 1e-12);
}

TEST(Importance, GoesThroughManyParticlesInBlocks) {
  const DiagonalGaussian inner(3, {0.8, -0.4}, {0.7, 0.9}, 0);
  const Counting target(inner);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(13), again = make_generator(13);
  const auto [log_w, cost, e] = importance_log_weights(problem, 5000, rng);
  EXPECT_EQ(log_w.sizes(), (std::vector<int64_t>{3, 5000}));
  EXPECT_EQ(target.densities, 15000);
  EXPECT_EQ(target.gradients, 0);
  EXPECT_EQ(cost, (Cost{15000, 0}));
  EXPECT_LE(target.most_rows, 2048);
  EXPECT_TRUE(at::equal(log_w, importance_log_weights(problem, 5000, again).log_w));
  EXPECT_EQ(std::get<0>(at::_unique(log_w)).numel(), 15000);  // no block is another's copy
}

/// Under a plan without moves AIS is importance sampling, and its particles are the draws.
TEST(Importance, IsAisUnderAPlanWithoutMoves) {
  const DiagonalGaussian inner(3, {0.8, -0.4}, {0.7, 0.9}, 0);
  const Counting target(inner);
  const AffineMap base = AffineMap::identity(3, 2, at::kDouble);
  const std::shared_ptr<const Path> path = PathRegistry::instance().make("path", "geometric");
  const std::shared_ptr<const Transition> kernel =
      TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
  const std::shared_ptr<const Resampling> systematic =
      ResamplingRegistry::instance().make("resampling", "systematic");
  for (const auto& resampling : {std::shared_ptr<const Resampling>(), systematic}) {
    const auto ais = MethodRegistry::instance().make(
        "method", "ais", AnnealingParts{path, kernel, resampling, /*keep_particles=*/true});
    const Problem problem(borrow(target), base);
    at::Generator rng = make_generator(14), again = make_generator(14);
    target.gradients = 0;
    const MethodResult found = ais->estimate(problem, Plan::without_moves(3, 500), rng);
    EXPECT_EQ(target.gradients, 0);
    EXPECT_EQ(found.cost, (Cost{1500, 0}));
    EXPECT_TRUE(at::equal(found.log_w, importance_log_weights(problem, 500, again).log_w));
    const at::Tensor there = found.particles->z;
    EXPECT_TRUE(at::allclose(found.particles->log_w, problem.log_weight(base.to_e(there))));
  }
}

TEST(Importance, RefusesDensitiesThatAreNoNumbers) {
  const auto ais = MethodRegistry::instance().make(
      "method", "ais",
      AnnealingParts{PathRegistry::instance().make("path", "geometric"),
                     TransitionRegistry::instance().make("kernel", "ghmc:0.8", {}), nullptr});
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    const FunctionTarget bad({.dim = 2}, [=](const at::Tensor& z) {
      return at::where(z.select(-1, 0) > (value < 0 ? -99 : 1), value, -0.5 * z.square().sum(-1));
    });
    at::Generator rng = make_generator(15);
    const Problem problem(borrow(bad), AffineMap::identity(1, 2, at::kDouble));
    const std::string remedy = value < 0 ? "start so" : "return -inf for zero";
    expect_error(ErrorKind::kData, {"problem 0 at starting particle", remedy},
                 [&] { ais->estimate(problem, Plan::without_moves(1, 500), rng); });
  }
}

}  // namespace
}  // namespace crais
