// What every registered kernel must do (that it is invariant is tests/transitions' business).
#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/transition.h"
#include "support/registered.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::LogGamma;

class Transitions : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Transition> make(int64_t num_leapfrog) const {
    return TransitionRegistry::instance().make("kernel", GetParam(), {num_leapfrog});
  }

  std::unique_ptr<Path> path_ = PathRegistry::instance().make("path", "geometric");
};

INSTANTIATE_TEST_SUITE_P(Every, Transitions,
                         ::testing::ValuesIn(testing::examples<TransitionRegistry>()),
                         testing::named_by_spec);

at::Tensor constant(double value) { return at::full({3}, value, at::kDouble); }

TEST_P(Transitions, CostWhatTheySay) {
  const LogGamma inner(3, {1.5, 3.0});
  const Counting target(inner);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(1);
  const Particles start = problem.start(10, rng);
  for (const int64_t num_leapfrog : {1, 5}) {
    target.gradients = 0;
    const auto kernel = make(num_leapfrog);
    const Moved moved = kernel->step(problem, *path_, start, constant(0.5), constant(0.3), rng);
    EXPECT_EQ(target.gradients, 30 * kernel->evaluations_per_step());
    EXPECT_EQ(target.densities, 0);
    EXPECT_TRUE(((moved.accept_prob >= 0) & (moved.accept_prob <= 1)).all().item<bool>());
    EXPECT_EQ(moved.accept_prob.scalar_type(), at::kDouble);
    EXPECT_GT(kernel->target_acceptance(), 0);
    EXPECT_LT(kernel->target_acceptance(), 1);
  }
}

TEST_P(Transitions, LeaveTheirArgumentsAlone) {
  const LogGamma target(3, {1.5, 3.0});
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(2);
  Particles start =
      make(1)
          ->step(problem, *path_, problem.start(10, rng), constant(0.5), constant(0.3), rng)
          .particles;
  const at::Tensor e = start.e.clone(), log_gamma = start.log_gamma.clone(),
                   grad = start.grad_log_gamma.clone();
  const at::Tensor momentum = start.momentum.defined() ? start.momentum.clone() : at::Tensor();
  make(3)->step(problem, *path_, start, constant(0.5), constant(0.3), rng);
  EXPECT_TRUE(at::equal(start.e, e));
  EXPECT_TRUE(at::equal(start.log_gamma, log_gamma));
  EXPECT_TRUE(at::equal(start.grad_log_gamma, grad));
  if (momentum.defined()) {
    EXPECT_TRUE(at::equal(start.momentum, momentum));
  }
}

/// Zero from 0.5 on, with a gradient that is not a number there.
class Cliff : public LogGamma {
 public:
  explicit Cliff(double height) : LogGamma(3, {1.5, 3.0}), height_(height) {}
  Evaluation evaluate(const at::Tensor& z) const override {
    const Evaluation found = LogGamma::evaluate(z);
    const at::Tensor beyond = (z > 0.5).any(-1);
    return {at::where(beyond, at::full_like(found.log_density, height_), found.log_density),
            at::where(beyond.unsqueeze(-1), at::full_like(found.grad, NAN), found.grad)};
  }

 private:
  double height_;
};

/// Proposals of no density are rejected, and nothing is wrong with them.
TEST_P(Transitions, RejectWhereThereIsNoDensity) {
  const Cliff target(-INFINITY);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(3);
  const Particles particles = problem.evaluate(-problem.draw(200, rng).abs());
  const Moved moved = make(1)->step(problem, *path_, particles, constant(0.5), constant(0.4), rng);
  EXPECT_GT((moved.accept_prob == 0).sum().item<int64_t>(), 5);
  EXPECT_EQ(moved.num_nonfinite.item<int64_t>(), 0);
  EXPECT_LE(moved.particles.e.max().item<double>(), 0.5);
}

TEST_P(Transitions, RejectAndCountWhatIsNotFinite) {
  const Cliff target(NAN);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(3);
  Particles particles = problem.evaluate(-problem.draw(200, rng).abs());
  int64_t num_nonfinite = 0;
  for (int i = 0; i < 5; ++i) {
    const Moved moved =
        make(2)->step(problem, *path_, particles, constant(0.5), constant(0.4), rng);
    particles = moved.particles;
    const auto here = moved.num_nonfinite.item<int64_t>();
    num_nonfinite += here;
    EXPECT_FALSE(moved.accept_prob.isnan().any().item<bool>());
    EXPECT_LE(here, (moved.accept_prob == 0).sum().item<int64_t>());
    EXPECT_LE(particles.e.max().item<double>(), 0.5);
    EXPECT_TRUE(particles.log_gamma.isfinite().all().item<bool>());
    EXPECT_TRUE(particles.grad_log_gamma.isfinite().all().item<bool>());
    if (particles.momentum.defined()) {
      EXPECT_TRUE(particles.momentum.isfinite().all().item<bool>());
    }
  }
  EXPECT_GT(num_nonfinite, 50);
}

/// In single precision.
class Single : public LogGamma {
 public:
  Single() : LogGamma(3, {1.5, 3.0}) {}
  Evaluation evaluate(const at::Tensor& z) const override {
    const Evaluation found = LogGamma::evaluate(z.to(at::kDouble));
    return {found.log_density.to(at::kFloat), found.grad.to(at::kFloat)};
  }
};

TEST_P(Transitions, KeepTheParticlesPrecision) {
  const Single target;
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kFloat));
  at::Generator rng = make_generator(4);
  Particles particles = problem.start(20, rng);
  for (int i = 0; i < 2; ++i)
    particles =
        make(2)->step(problem, *path_, particles, constant(0.5), constant(0.4), rng).particles;
  EXPECT_EQ(particles.e.scalar_type(), at::kFloat);
  EXPECT_EQ(particles.grad_log_gamma.scalar_type(), at::kFloat);
  EXPECT_EQ(particles.log_gamma.scalar_type(), at::kDouble);
  EXPECT_EQ(particles.log_q0.scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace crais
