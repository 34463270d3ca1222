// What every registered schedule must do on a real annealing run.
#include <gtest/gtest.h>

#include "core/log_math.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "samplers/anneal.h"
#include "samplers/plan.h"
#include "support/registered.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;
using testing::TemporaryFolder;

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, entry] : ScheduleRegistry::instance().entries()) all.push_back(name);
  return all;
}

/// The step size 0.4, whatever happens.
class Constant : public StepSizes {
 public:
  at::Tensor at(int64_t) const override { return at::full({1}, 0.4, at::kDouble); }
};

class Schedules : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<ScheduleRule> make(const ScheduleOptions& options) const {
    const auto& entry = ScheduleRegistry::instance().entries().at(GetParam());
    const std::string spec = GetParam() == "file"
                                 ? "file:" + folder_.file("betas", "0\n0.1\n0.4\n0.8\n1\n")
                                 : entry.example;
    return ScheduleRegistry::instance().make("schedule", spec, options);
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Every, Schedules, ::testing::ValuesIn(names()), testing::named_by_spec);

TEST_P(Schedules, RiseFromZeroToExactlyOne) {
  // Problems of very different difficulty.
  const DiagonalGaussian inner(
      at::tensor({0.1, -0.2, 1.0, 2.0, 2.5, -1.5}, at::kDouble).view({3, 2}),
      at::tensor({0.9, 1.1, 0.5, 1.4, 0.2, 0.3}, at::kDouble).view({3, 2}),
      at::tensor({0.0, 3.0, -2.0}, at::kDouble));
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {2});
  for (const bool shared : {true, false}) {
    for (const bool weighted : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "shared " << shared << ", weighted " << weighted);
      const Counting target(inner);
      const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
      ScheduleOptions options{.steps = 9, .weighted = weighted};
      const auto rule = make(options);
      Constant step_sizes;
      at::Generator rng = make_generator(1);
      const AnnealResult run =
          anneal(problem, *path, *rule, *kernel, step_sizes, {64, 5000, shared}, rng);

      EXPECT_TRUE((run.betas[0] == 0).all().item<bool>());
      EXPECT_TRUE((run.betas[-1] == 1).all().item<bool>());
      EXPECT_TRUE((run.betas[-2] < 1).any().item<bool>());
      const at::Tensor before = run.betas.slice(0, 0, -1), step = run.betas.diff(1, 0);
      EXPECT_TRUE(((step > 0) | ((step == 0) & (before == 1))).all().item<bool>());
      if (rule->is_adaptive())
        EXPECT_LE(step.max().item<double>(), options.max_step + 1e-15);
      else
        EXPECT_EQ(run.betas.size(0), rule->betas().size(0));
      if (shared) {
        EXPECT_TRUE(at::equal(run.betas, run.betas.slice(1, 0, 1).expand_as(run.betas)));
      }
      EXPECT_TRUE(run.log_w.isfinite().all().item<bool>());
      // The rule looks at caches alone.
      const int64_t transitions = run.betas.size(0) - 1;
      EXPECT_EQ(target.gradients, 3 * 64 * (1 + 2 * transitions));
      EXPECT_EQ(target.densities, 0);
    }
  }
}

TEST_P(Schedules, ObeyTheirLimits) {
  const DiagonalGaussian target(2, {1.0, -0.5}, {0.4, 0.7}, 0.3);
  const Problem problem(borrow(target), AffineMap::identity(2, 2, at::kDouble));
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  ScheduleOptions options{.min_step = 0.05, .max_step = 0.0625};
  const auto rule = make(options);
  if (!rule->is_adaptive()) return;
  Constant step_sizes;
  at::Generator rng = make_generator(2);
  const AnnealResult run =
      anneal(problem, *path, *rule, *kernel, step_sizes, {32, 5000, true}, rng);
  const at::Tensor step = run.betas.diff(1, 0);
  EXPECT_LE(step.max().item<double>(), 0.0625 + 1e-12);
  EXPECT_GE(step.slice(0, 0, -1).min().item<double>(), 0.05 - 1e-12);
}

}  // namespace
}  // namespace crais
