#include "core/problem.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "util/interrupt.h"

namespace crais {
namespace {

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

/// A signal comes while the first of several blocks is evaluated.
TEST(Problem, EvaluatesManyParticlesInBlocksThatHeedSignals) {
  const DiagonalGaussian inner(2, {0.5, -1}, {0.7, 2}, 0.3);
  const testing::Counting target(inner);
  const Problem problem(borrow(target), triangular_base(2));
  at::Generator rng = make_generator(2);
  const at::Tensor e = problem.draw(600'000, rng);
  const Particles found = problem.evaluate(e), last = problem.evaluate(e.slice(1, -3).contiguous());
  EXPECT_LT(target.most_rows, 1'100'000);
  EXPECT_LT(max_abs_diff(found.log_gamma.slice(1, -3), last.log_gamma), 1e-12);
  EXPECT_LT(max_abs_diff(found.grad_log_gamma.slice(1, -3), last.grad_log_gamma), 1e-12);
  const FunctionTarget signalled({2, 2}, [](const at::Tensor& z) {
    set_interrupted(true);
    return z.sum(-1);
  });
  expect_error(ErrorKind::kInterrupted, {"interrupted"},
               [&] { Problem(borrow(signalled), triangular_base(2)).evaluate(e); });
  set_interrupted(false);
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
  const FunctionTarget target({2, 1}, [](const at::Tensor& z) { return 0 * z.sum(-1) - INFINITY; });
  const Problem problem(borrow(target), AffineMap::identity(2, 1, at::kDouble));
  at::Generator rng = make_generator(3);
  expect_error(ErrorKind::kData, {"-inf", "8 of 8"}, [&] { problem.start(4, rng); });
}

TEST(Target, IsNaNWhereAMatrixIsSingular) {
  const FunctionTarget one({1, 1}, [](const at::Tensor& z) {
    return at::linalg_inv(z.unsqueeze(-1)).sum({2, 3});
  });
  const at::Tensor z = at::tensor({1.0, 0.0, 2.0, 4.0}, at::kDouble).view({2, 2, 1});
  const Evaluation found = one.select(at::zeros({2}, at::kLong))->evaluate(z);
  const at::Tensor expected = at::where(z == 0, NAN, 1 / z).squeeze(-1);
  EXPECT_TRUE(at::allclose(found.log_density, expected, 0, 1e-15, /*equal_nan=*/true));
  EXPECT_NEAR(found.grad[1][0][0].item<double>(), -0.25, 1e-15);
}

}  // namespace
}  // namespace crais
