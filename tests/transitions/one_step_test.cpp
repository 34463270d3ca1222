// One step of every kernel against its definition.
#include <gtest/gtest.h>

#include "core/rng.h"
#include "support/reference_kernels.h"
#include "support/registered.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Fault;
using testing::LangevinFault;
using testing::LogGamma;
using testing::max_abs_diff;
using testing::ReferenceHmc;
using testing::ReferenceLangevin;

class OneStep : public ::testing::TestWithParam<std::string> {
 protected:
  OneStep() {
    const at::Tensor scale = at::tensor({0.8, 0.0, -0.5, 1.2}, at::kDouble).view({2, 2});
    problem_ = std::make_unique<Problem>(
        borrow(target_), AffineMap(at::full({3, 2}, 0.3, at::kDouble), scale.repeat({3, 1, 1})));
    at::Generator rng = make_generator(1);
    start_ = problem_->start(100, rng);
    if (GetParam() == "ghmc:0.6") start_.momentum = problem_->draw(100, rng);
  }

  static std::unique_ptr<Transition> kernel(int64_t num_leapfrog) {
    return TransitionRegistry::instance().make("kernel", GetParam(), {num_leapfrog});
  }
  static std::unique_ptr<Transition> reference(int64_t num_leapfrog) {
    if (GetParam() == "hmc" || GetParam() == "ghmc:0.6")
      return std::make_unique<ReferenceHmc>(Fault::kNone, num_leapfrog,
                                            GetParam() == "hmc" ? 0 : 0.6);
    return std::make_unique<ReferenceLangevin>(LangevinFault::kNone, GetParam() == "mala");
  }
  Moved step(const Transition& kernel, const Path& path, const std::vector<double>& sizes) const {
    at::Generator rng = make_generator(2);
    return kernel.step(*problem_, path, start_, at::full({3}, 0.6, at::kDouble),
                       at::tensor(sizes, at::kDouble), rng);
  }

  LogGamma target_{3, {0.6, 3.0}};
  std::unique_ptr<Problem> problem_;
  Particles start_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, OneStep,
                         ::testing::Values("hmc", "ghmc:0.6", "mala", "random-walk"),
                         testing::named_by_spec);

/// Equal random numbers give equal proposals, probabilities and decisions.
TEST_P(OneStep, IsTheReference) {
  for (const char* spec : {"geometric", "power:0.5", "power:1"})
    for (const int64_t num_leapfrog : {1, 3}) {
      SCOPED_TRACE(std::string(spec) + " " + std::to_string(num_leapfrog));
      const auto path = PathRegistry::instance().make("path", spec);
      const double scale = num_leapfrog == 1 ? 1.5 : 0.8;  // larger ones diverge
      const std::vector<double> sizes = {0.2 * scale, 0.6 * scale, scale};
      const Moved found = step(*kernel(num_leapfrog), *path, sizes),
                  expected = step(*reference(num_leapfrog), *path, sizes);
      EXPECT_GT((found.particles.e != start_.e).sum().item<int64_t>(), 100);
      EXPECT_GT((found.particles.e == start_.e).sum().item<int64_t>(), 5);
      EXPECT_LT(max_abs_diff(found.accept_prob, expected.accept_prob), 1e-11);
      EXPECT_LT(max_abs_diff(found.particles.e, expected.particles.e), 1e-12);
      if (expected.particles.momentum.defined()) {
        EXPECT_LT(max_abs_diff(found.particles.momentum, expected.particles.momentum), 1e-12);
      }
      const Particles again = problem_->evaluate(found.particles.e);
      EXPECT_LT(max_abs_diff(again.log_gamma, found.particles.log_gamma), 1e-12);
      EXPECT_LT(max_abs_diff(again.log_q0, found.particles.log_q0), 1e-12);
      EXPECT_LT(max_abs_diff(again.grad_log_gamma, found.particles.grad_log_gamma), 1e-12);
    }
}

}  // namespace
}  // namespace crais
