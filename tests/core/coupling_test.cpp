#include "core/coupling.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "core/rng.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

/// Coordinates 4, 1 and 3 depend on 0 and 2, and on each other. No weight is 0, but those of links
/// that do not turn.
Coupling coupling(bool links_turn = true) {
  at::Generator rng = make_generator(3);
  const auto weights = [&](int64_t columns, int64_t rows = 3) {
    return 0.4 * at::randn({rows, columns}, rng, at::kDouble);
  };
  const auto turns = [&] {
    return at::cat({weights(3), static_cast<double>(links_turn) * weights(3).tril(-1)}, 1);
  };
  return {at::tensor({4, 1, 3}, at::kLong),
          at::tensor({0, 2}, at::kLong),
          at::tensor({0.3, -0.7}, at::kDouble),
          at::tensor({1.4, 0.6}, at::kDouble),
          weights(3).tril(-1),
          weights(5),
          weights(5),
          weights(3),
          at::stack({turns(), turns()})};
}

at::Tensor points() {
  at::Generator rng = make_generator(4);
  return at::randn({2, 3, 5}, rng, at::kDouble);
}

TEST(Coupling, IsItsInversesInverse) {
  const at::Tensor u = points();
  for (const bool links_turn : {true, false}) {
    const Coupling both = coupling(links_turn);
    EXPECT_LT(max_abs_diff(both.to_u(both.to_z(u)), u), 1e-12);
    EXPECT_LT(max_abs_diff(both.to_z(both.to_u(u)), u), 1e-12);
  }
}

/// The determinant of the Jacobian by autograd, point by point.
TEST(Coupling, KnowsItsDeterminant) {
  const at::Tensor found = coupling().log_abs_det(points()).flatten();
  const at::Tensor flat = points().view({-1, 5});
  for (int64_t n = 0; n < flat.size(0); ++n) {
    const at::Tensor u = flat[n].clone().requires_grad_(true);
    const at::Tensor z = coupling().to_z(u);
    std::vector<at::Tensor> rows;
    for (int64_t d = 0; d < 5; ++d)
      rows.push_back(torch::autograd::grad({z[d]}, {u}, {}, /*retain_graph=*/true)[0]);
    EXPECT_NEAR(found[n].item<double>(), at::linalg_det(at::stack(rows)).abs().log().item<double>(),
                1e-10);
  }
}

TEST(Coupling, PullsGradientsBack) {
  const at::Tensor u = points().requires_grad_(true);
  at::Generator rng = make_generator(5);
  const at::Tensor weight = at::randn({5}, rng, at::kDouble);
  for (const bool links_turn : {true, false}) {
    const Coupling both = coupling(links_turn);
    const at::Tensor z = both.to_z(u);
    const at::Tensor total = ((z * weight).sin().sum(-1) + both.log_abs_det(u)).sum();
    const at::Tensor wanted = torch::autograd::grad({total}, {u})[0];
    const at::Tensor grad_z = weight * (z.detach() * weight).cos();
    EXPECT_LT(max_abs_diff(both.pull_back(grad_z, u.detach()), wanted), 1e-10);
  }
}

/// A diverging move reaches any point: scales end at e^20 times the usual, and their gradient at 0.
TEST(Coupling, StaysFiniteFarAway) {
  const at::Tensor far = at::full({1, 5}, -1e6, at::kDouble);
  EXPECT_TRUE(coupling().to_z(far).isfinite().all().item<bool>());
  EXPECT_LE(coupling().log_abs_det(far).abs().item<double>(), 3 * 20 + 3);
  EXPECT_TRUE(
      coupling().pull_back(at::ones({1, 5}, at::kDouble), far).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace crais
