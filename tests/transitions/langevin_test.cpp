// One step of the Langevin and random-walk kernels against their definitions.
#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/reference_langevin.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::LangevinFault;
using testing::LogGamma;
using testing::max_abs_diff;
using testing::ReferenceLangevin;

class OneStep : public ::testing::TestWithParam<std::string> {
 protected:
  OneStep() {
    const at::Tensor scale = at::tensor({0.8, 0.0, -0.5, 1.2}, at::kDouble).view({2, 2});
    problem_ = std::make_unique<Problem>(
        borrow(target_), AffineMap(at::full({3, 2}, 0.3, at::kDouble), scale.repeat({3, 1, 1})));
    at::Generator rng = make_generator(1);
    start_ = problem_->start(100, rng);
  }

  Moved step(const Transition& kernel, const Path& path, const std::vector<double>& sizes) const {
    at::Generator rng = make_generator(2);
    return kernel.step(*problem_, path, start_, at::full({3}, 0.6, at::kDouble),
                       at::tensor(sizes, at::kDouble), rng);
  }

  std::unique_ptr<Transition> kernel_ =
      TransitionRegistry::instance().make("kernel", GetParam(), {1});
  LogGamma target_{3, {0.6, 3.0}};
  std::unique_ptr<Problem> problem_;
  Particles start_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, OneStep, ::testing::Values("mala", "random-walk"),
                         [](const auto& instance) {
                           return instance.param == "mala" ? "Mala" : "RandomWalk";
                         });

/// Equal random numbers give equal proposals, probabilities and decisions.
TEST_P(OneStep, IsTheReference) {
  const ReferenceLangevin reference(LangevinFault::kNone, GetParam() == "mala");
  for (const char* spec : {"geometric", "power:0.5", "power:1"}) {
    const auto path = PathRegistry::instance().make("path", spec);
    const Moved found = step(*kernel_, *path, {0.3, 0.9, 1.5});
    const Moved expected = step(reference, *path, {0.3, 0.9, 1.5});
    EXPECT_LT(max_abs_diff(found.accept_prob, expected.accept_prob), 1e-11) << spec;
    EXPECT_LT(max_abs_diff(found.particles.e, expected.particles.e), 1e-12) << spec;
    const Particles again = problem_->evaluate(found.particles.e);
    EXPECT_LT(max_abs_diff(again.log_gamma, found.particles.log_gamma), 1e-12);
    EXPECT_LT(max_abs_diff(again.log_q0, found.particles.log_q0), 1e-12);
    EXPECT_LT(max_abs_diff(again.grad_log_gamma, found.particles.grad_log_gamma), 1e-12);
  }
}

TEST_P(OneStep, UsesTheStepSizeOfEachProblem) {
  const auto path = PathRegistry::instance().make("path", "geometric");
  const Moved moved = step(*kernel_, *path, {1e-4, 0.8, 20});
  EXPECT_GT(moved.accept_prob[0].min().item<double>(), 0.99);
  EXPECT_LT(moved.accept_prob[2].mean().item<double>(), 0.1);
  EXPECT_LT((moved.particles.e - start_.e)[0].abs().max().item<double>(), 1e-3);
}

}  // namespace
}  // namespace crais
