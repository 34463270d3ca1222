#include "core/spline.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>
#include <memory>

#include "core/coupling.h"
#include "core/rng.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

/// Splines of coordinates 2 and 0 of three.
Spline spline() {
  return {3, at::tensor({2, 0}, at::kLong),
          at::tensor({-2.0, -0.5, 0.4, 2.5, -1.0, 0.0, 0.1, 1.0}, at::kDouble).view({2, 4}),
          at::tensor({-5.0, -1.0, 3.0, 3.5, 0.0, 1.0, 7.0, 8.0}, at::kDouble).view({2, 4}),
          at::tensor({1.5, 0.2, 6.0, 0.7, 1.0, 2.0, 30.0, 0.5}, at::kDouble).view({2, 4})};
}

/// Points in every piece and beyond both ends.
at::Tensor spread_points() {
  at::Generator rng = make_generator(1);
  return 2 * at::randn({4, 50, 3}, rng, at::kDouble);
}

TEST(Spline, PassesThroughItsKnotsWithTheirSlopes) {
  const at::Tensor u = at::tensor({0.1, 9.0, 0.4}, at::kDouble).view({1, 3});
  EXPECT_LT(max_abs_diff(spline().to_z(u), at::tensor({7.0, 9.0, 3.0}, at::kDouble)), 1e-12);
  EXPECT_NEAR(spline().log_abs_det(u).item<double>(), std::log(30.0 * 6.0), 1e-12);
}

TEST(Spline, IsLinearBeyondTheKnots) {
  const at::Tensor far = at::tensor({-101.0, 0.0, 102.5}, at::kDouble).view({1, 3});
  EXPECT_LT(max_abs_diff(spline().to_z(far), at::tensor({-100.0, 0.0, 73.5}, at::kDouble)), 1e-10);
}

/// Against autograd of to_z: coordinates are independent, so its gradient is the diagonal.
TEST(Spline, KnowsItsDeterminant) {
  const at::Tensor u = spread_points().requires_grad_(true);
  const at::Tensor slopes = torch::autograd::grad({spline().to_z(u).sum()}, {u})[0];
  EXPECT_LT(max_abs_diff(spline().log_abs_det(u.detach()), slopes.log().sum(-1)), 1e-10);
}

/// Against autograd of a function and the determinant, alone and inside a coupling.
TEST(Spline, PullsGradientsBack) {
  const auto coupling = std::make_shared<Coupling>(
      at::tensor({1}, at::kLong), at::tensor({0, 2}, at::kLong), at::zeros({2}, at::kDouble),
      at::ones({2}, at::kDouble), at::zeros({1, 1}, at::kDouble),
      at::tensor({0.1, 0.2, 0.3, 0.1, -0.2}, at::kDouble).view({1, 5}),
      at::tensor({0.2, -0.1, 0.1, 0.2, 0.3}, at::kDouble).view({1, 5}),
      at::tensor({0.3, 0.5, -0.4}, at::kDouble).view({1, 3}),
      at::tensor({0.2, 0.1, -0.3, 0.0, 0.4, -0.2, 0.1, 0.0}, at::kDouble).view({2, 1, 4}));
  const Composition both(coupling, std::make_shared<Spline>(spline()));
  const Spline alone = spline();
  for (const Bijection* bijection :
       {static_cast<const Bijection*>(&alone), static_cast<const Bijection*>(&both)}) {
    const at::Tensor u = spread_points().requires_grad_(true);
    const at::Tensor z = bijection->to_z(u);
    const at::Tensor weight = at::tensor({0.3, -0.8, 0.5}, at::kDouble);
    const at::Tensor total = ((z * weight).sin().sum(-1) + bijection->log_abs_det(u)).sum();
    const at::Tensor wanted = torch::autograd::grad({total}, {u})[0];
    const at::Tensor grad_z = weight * (z.detach() * weight).cos();
    EXPECT_LT(max_abs_diff(bijection->pull_back(grad_z, u.detach()), wanted), 1e-9);
    EXPECT_LT(max_abs_diff(bijection->to_u(z.detach()), u.detach()), 1e-9);
  }
}

}  // namespace
}  // namespace crais
