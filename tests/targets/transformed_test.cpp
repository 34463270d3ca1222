#include "targets/transformed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/coupling.h"
#include "core/problem.h"
#include "core/rng.h"
#include "support/statistics.h"
#include "targets/function_target.h"
#include "util/error.h"

namespace crais {
namespace {

using testing::max_abs_diff;

/// Undoes the funnel: x = exp(v / 2) u.
std::shared_ptr<const Bijection> of_funnel() {
  const at::TensorOptions wide = at::kDouble;
  const at::Tensor log_scale = at::zeros({2, 3}, wide);
  log_scale.select(1, 1).fill_(0.5);
  return std::make_shared<Coupling>(at::tensor({1, 2}, at::kLong), at::tensor({0}, at::kLong),
                                    at::zeros({1}, wide), at::ones({1}, wide),
                                    at::zeros({2, 2}, wide), at::zeros({2, 3}, wide), log_scale,
                                    at::zeros({2, 2}, wide), at::zeros({2}, wide));
}

std::shared_ptr<const Target> funnel(int64_t replicates) {
  TargetOptions options{.num_problems = replicates};
  return TargetRegistry::instance().make("target", "funnel:3", options);
}

/// In the coordinates u a funnel is N(0, diag(9, 1, 1)).
TEST(Transformed, MakesAFunnelNormal) {
  const Transformed target(funnel(2), of_funnel());
  at::Generator rng = make_generator(1);
  const at::Tensor u = 3 * at::randn({2, 5, 3}, rng, at::kDouble);
  const at::Tensor sd = at::tensor({3.0, 1.0, 1.0}, at::kDouble);
  const at::Tensor wanted =
      (-0.5 * (u / sd).square() - sd.log() - 0.5 * std::log(2 * M_PI)).sum(-1);
  EXPECT_LT(max_abs_diff(target.log_density(u), wanted), 1e-10);
  const Evaluation found = target.evaluate(u);
  EXPECT_LT(max_abs_diff(found.log_density, wanted), 1e-10);
  EXPECT_LT(max_abs_diff(found.grad, -u / sd.square()), 1e-10);
  const at::Tensor index = at::tensor({1}, at::kLong);
  EXPECT_LT(max_abs_diff(target.select(index)->log_density(u.index_select(0, index)),
                         wanted.index_select(0, index)),
            1e-10);
}

/// A density that is no number where z_0 is above `most`, under N(0, I).
Problem undefined_above(double most, bool transforms) {
  const auto density = [most](const at::Tensor& z, const at::Tensor& /*index*/) {
    const at::Tensor half = -0.5 * z.square().sum(-1);
    return at::where(z.select(-1, 0) > most, half + NAN, half);
  };
  const auto target = std::make_shared<FunctionTarget>(FunctionTargetOptions{1, 3},
                                                       FunctionTarget::IndexedLogDensity(density));
  return {transforms ? std::make_shared<Transformed>(target, of_funnel())
                     : std::shared_ptr<const Target>(target),
          AffineMap::identity(1, 3, at::kDouble)};
}

/// A normal exceeds 2.6 in 5 of 1,000 draws, and 2 in 23.
TEST(Transformed, GivesNoWeightToTheFewStartsWithoutADensity) {
  at::Generator rng = make_generator(4);
  const Particles start = undefined_above(2.6, true).start(2000, rng);
  const at::Tensor beyond = start.e.select(2, 0) > 2.6;
  EXPECT_GT(beyond.sum().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(start.log_gamma == Problem::kNothing, beyond));
  EXPECT_TRUE(start.grad_log_gamma.isfinite().all().item<bool>());
  EXPECT_THROW(undefined_above(2.6, false).start(2000, rng), Error);
  EXPECT_THROW(undefined_above(2, true).start(2000, rng), Error);
}

/// Whoever shares a call with a point does not decide on its density.
TEST(Transformed, LeavesOtherPointsAsTheyAre) {
  const Problem problem = undefined_above(30, true);
  at::Tensor u = at::ones({1, 200, 3}, at::kDouble);
  u[0][7][0] = 31;
  EXPECT_TRUE(problem.target().log_density(u)[0][7].isnan().item<bool>());
  EXPECT_TRUE(problem.target().evaluate(u).log_density[0][7].isnan().item<bool>());
}

TEST(Transformed, HasTheSameNormalizerAndDraws) {
  const Transformed target(funnel(1), of_funnel());
  EXPECT_EQ(target.true_log_normalizer()->item<double>(), 0);
  at::Generator rng = make_generator(2);
  const at::Tensor u = *target.exact_sample(4000, rng);
  const at::Tensor sd = u.std(1).squeeze(0);
  EXPECT_NEAR(sd[0].item<double>(), 3, 0.2);
  EXPECT_NEAR(sd[1].item<double>(), 1, 0.06);
  EXPECT_NEAR(sd[2].item<double>(), 1, 0.06);
}

}  // namespace
}  // namespace crais
