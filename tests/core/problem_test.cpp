#include "core/problem.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;
using testing::LogGamma;
using testing::max_abs_diff;

AffineMap triangular_base(int64_t num_problems) {
  const at::Tensor loc = at::tensor({0.3, -0.4}, at::kDouble).repeat({num_problems, 1});
  const at::Tensor scale =
      at::tensor({0.8, 0.0, -0.5, 1.7}, at::kDouble).view({2, 2}).repeat({num_problems, 1, 1});
  return {loc, scale};
}

TEST(Problem, EvaluatesTheDensityInWhitenedCoordinates) {
  const LogGamma target(3, {0.7, 2.5});
  const Problem problem(borrow(target), triangular_base(3));
  at::Generator rng = make_generator(1);
  const at::Tensor e = problem.draw(4, rng).requires_grad_(true);
  const at::Tensor expected = target.log_density(problem.base().to_z(e)) + std::log(0.8 * 1.7);
  expected.sum().backward();
  const Particles found = problem.evaluate(e.detach());
  EXPECT_LT(max_abs_diff(found.log_gamma, expected.detach()), 1e-13);
  EXPECT_LT(max_abs_diff(found.grad_log_gamma, e.grad()), 1e-13);
  const at::Tensor log_q0 = (-0.5 * e.detach().square() - 0.5 * std::log(2 * M_PI)).sum(-1);
  EXPECT_LT(max_abs_diff(found.log_q0, log_q0), 1e-13);
  EXPECT_LT(max_abs_diff(problem.log_weight(e.detach()), found.log_gamma - found.log_q0), 1e-13);
}

TEST(Problem, CostsWhatTheTargetIsAsked) {
  const DiagonalGaussian inner(3, {1, 2}, {0.5, 2}, 0.4);
  const Counting target(inner);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(2);
  const at::Tensor e = problem.draw(5, rng);
  EXPECT_EQ(target.gradients, 0);
  problem.start(7, rng);
  EXPECT_EQ(problem.cost_of(7), (Cost{21, 21}));
  EXPECT_EQ(target.gradients, 21);
  problem.evaluate(e);
  problem.log_weight(e);
  EXPECT_EQ(target.gradients, 21 + 15);
  EXPECT_EQ(target.densities, 15);
}

TEST(Problem, RejectsABaseOfAnotherShape) {
  const DiagonalGaussian target(3, {1, 2}, {0.5, 2}, 0);
  EXPECT_THROW(Problem(borrow(target), AffineMap::identity(3, 1, at::kDouble)), c10::Error);
  EXPECT_THROW(Problem(borrow(target), AffineMap::identity(2, 2, at::kDouble)), c10::Error);
}

/// Bad at one particle of one problem.
class Spoilt : public DiagonalGaussian {
 public:
  Spoilt(double value, double slope)
      : DiagonalGaussian(3, {0, 0}, {1, 1}, 0), value_(value), slope_(slope) {}
  Evaluation evaluate(const at::Tensor& z) const override {
    Evaluation found = DiagonalGaussian::evaluate(z);
    found.log_density[1][2] += value_;
    found.grad[1][2][0] += slope_;
    return found;
  }

 private:
  double value_, slope_;
};

TEST(Problem, NamesANonFiniteStart) {
  for (const auto& [value, slope] : {std::pair{INFINITY + 0.0, 0.0}, std::pair{0.0, double(NAN)}}) {
    const Spoilt target(value, slope);
    const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
    at::Generator rng = make_generator(3);
    expect_error(ErrorKind::kData, {"problem 1", "particle 2", "1 of 12"},
                 [&] { problem.start(4, rng); });
    problem.evaluate(problem.draw(4, rng));  // on the way anything may happen
  }
}

/// A density of zero is a weight of zero, not a fault.
TEST(Problem, StartsOfNoDensityHaveNoWeight) {
  const Spoilt target(-INFINITY, 0.0);
  const Problem problem(borrow(target), AffineMap::identity(3, 2, at::kDouble));
  at::Generator rng = make_generator(3);
  const Particles start = problem.start(4, rng);
  EXPECT_EQ(start.log_gamma[1][2].item<double>(), Problem::kNothing);
  EXPECT_EQ((start.log_gamma < -1e20).sum().item<int64_t>(), 1);
  EXPECT_TRUE(start.grad_log_gamma.isfinite().all().item<bool>());
}

TEST(Problem, NamesAStartWhereNothingHasDensity) {
  class Nowhere : public DiagonalGaussian {
   public:
    Nowhere() : DiagonalGaussian(2, {1}, {1}, 0) {}
    at::Tensor log_density(const at::Tensor& z) const override {
      return at::full_like(z.select(-1, 0), -INFINITY) + 0 * z.select(-1, 0);
    }
  };
  const Nowhere target;
  const Problem problem(borrow(target), AffineMap::identity(2, 1, at::kDouble));
  at::Generator rng = make_generator(3);
  expect_error(ErrorKind::kData, {"-inf", "8 of 8"}, [&] { problem.start(4, rng); });
}

TEST(Particles, WhereTakesEachFromItsSide) {
  const DiagonalGaussian target(2, {1, 2}, {0.5, 2}, 0);
  const Problem problem(borrow(target), AffineMap::identity(2, 2, at::kDouble));
  at::Generator rng = make_generator(4);
  const Particles yes = problem.start(3, rng), no = problem.start(3, rng);
  const at::Tensor mask = at::tensor({1, 0, 0, 0, 1, 1}, at::kLong).view({2, 3}) == 1;
  const Particles mixed = where(mask, yes, no);
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t k = 0; k < 3; ++k) {
      const Particles& side = mask[p][k].item<bool>() ? yes : no;
      EXPECT_TRUE(at::equal(mixed.e[p][k], side.e[p][k]));
      EXPECT_TRUE(at::equal(mixed.log_q0[p][k], side.log_q0[p][k]));
      EXPECT_TRUE(at::equal(mixed.log_gamma[p][k], side.log_gamma[p][k]));
      EXPECT_TRUE(at::equal(mixed.grad_log_gamma[p][k], side.grad_log_gamma[p][k]));
    }
}

TEST(Target, DefaultGradientIsAutogradUnderNoGrad) {
  const LogGamma target(1, {0.7, 2.5});
  const at::Tensor z = at::tensor({0.2, -0.3}, at::kDouble).view({1, 1, 2});
  const c10::NoGradGuard no_grad;
  const Evaluation found = target.evaluate(z);
  EXPECT_NEAR(found.grad[0][0][0].item<double>(), 0.7 - std::exp(0.2), 1e-14);
  EXPECT_NEAR(found.grad[0][0][1].item<double>(), 2.5 - std::exp(-0.3), 1e-14);
  EXPECT_FALSE(found.log_density.requires_grad());
}

}  // namespace
}  // namespace crais
