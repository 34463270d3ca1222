// Couplings, splines and both: there and back, determinants and gradients by autograd.
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <cmath>
#include <memory>

#include "core/coupling.h"
#include "core/rng.h"
#include "core/spline.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

constexpr int64_t kCoordinates = 5;

/// Coordinates 4, 1 and 3 depend on 0 and 2, and with links on each other. No weight is 0.
std::shared_ptr<const Bijection> coupling(int64_t links = 3) {
  at::Generator rng = make_generator(3);
  const auto weights = [&](int64_t columns, int64_t rows = 3) {
    return 0.4 * at::randn({rows, columns}, rng, at::kDouble);
  };
  return std::make_shared<Coupling>(
      at::tensor({4, 1, 3}, at::kLong), at::tensor({0, 2}, at::kLong),
      at::tensor({0.3, -0.7}, at::kDouble), at::tensor({1.4, 0.6}, at::kDouble),
      weights(links, links).tril(-1), weights(5), weights(5), weights(3), weights(1).flatten());
}

/// Splines of coordinates 2 and 0.
std::shared_ptr<const Bijection> spline() {
  return std::make_shared<Spline>(
      kCoordinates, at::tensor({2, 0}, at::kLong),
      at::tensor({-2.0, -0.5, 0.4, 2.5, -1.0, 0.0, 0.1, 1.0}, at::kDouble).view({2, 4}),
      at::tensor({-5.0, -1.0, 3.0, 3.5, 0.0, 1.0, 7.0, 8.0}, at::kDouble).view({2, 4}),
      at::tensor({1.5, 0.2, 6.0, 0.7, 1.0, 2.0, 30.0, 0.5}, at::kDouble).view({2, 4}));
}

class Bijections
    : public ::testing::TestWithParam<std::pair<const char*, std::shared_ptr<const Bijection>>> {
 protected:
  const Bijection& bijection() const { return *GetParam().second; }
  /// In every piece of the splines and beyond both ends.
  static at::Tensor points() {
    at::Generator rng = make_generator(4);
    return 2 * at::randn({2, 20, kCoordinates}, rng, at::kDouble);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Every, Bijections,
    ::testing::Values(std::pair{"Coupling", coupling(0)}, std::pair{"Spline", spline()},
                      std::pair{"Both", std::shared_ptr<const Bijection>(
                                            std::make_shared<Composition>(coupling(), spline()))}),
    [](const auto& instance) { return instance.param.first; });

TEST_P(Bijections, GoThereAndBack) {
  const at::Tensor u = points();
  EXPECT_LT(max_abs_diff(bijection().to_u(bijection().to_z(u)), u), 1e-9);
  EXPECT_LT(max_abs_diff(bijection().to_z(bijection().to_u(u)), u), 1e-9);
}

/// Against the Jacobian by autograd, point by point.
TEST_P(Bijections, KnowTheirDeterminant) {
  const at::Tensor found = bijection().log_abs_det(points()).flatten();
  const at::Tensor flat = points().view({-1, kCoordinates});
  for (int64_t n = 0; n < flat.size(0); ++n) {
    const at::Tensor u = flat[n].clone().requires_grad_(true);
    const at::Tensor z = bijection().to_z(u);
    std::vector<at::Tensor> rows;
    for (int64_t d = 0; d < kCoordinates; ++d)
      rows.push_back(torch::autograd::grad({z[d]}, {u}, {}, /*retain_graph=*/true)[0]);
    EXPECT_NEAR(found[n].item<double>(), at::linalg_det(at::stack(rows)).abs().log().item<double>(),
                1e-9);
  }
}

TEST_P(Bijections, PullGradientsBack) {
  const at::Tensor u = points().requires_grad_(true);
  at::Generator rng = make_generator(5);
  const at::Tensor weight = at::randn({kCoordinates}, rng, at::kDouble);
  const at::Tensor z = bijection().to_z(u);
  const at::Tensor total = ((z * weight).sin().sum(-1) + bijection().log_abs_det(u)).sum();
  const at::Tensor wanted = torch::autograd::grad({total}, {u})[0];
  const at::Tensor grad_z = weight * (z.detach() * weight).cos();
  EXPECT_LT(max_abs_diff(bijection().pull_back(grad_z, u.detach()) / (1 + wanted.abs()),
                         wanted / (1 + wanted.abs())),
            1e-9);
}

/// A diverging move reaches any point: scales end at e^20 times the usual, and their gradient at 0.
TEST(Coupling, StaysFiniteFarAway) {
  const at::Tensor far = at::full({1, kCoordinates}, -1e6, at::kDouble);
  EXPECT_TRUE(coupling()->to_z(far).isfinite().all().item<bool>());
  EXPECT_LE(coupling()->log_abs_det(far).abs().item<double>(), 3 * 20 + 3);
  EXPECT_TRUE(coupling()->pull_back(at::ones_like(far), far).isfinite().all().item<bool>());
}

/// Through its knots with their slopes, and linear beyond them.
TEST(Spline, IsWhatItsKnotsSay) {
  const at::Tensor u =
      at::tensor({0.1, 9.0, 0.4, 0.0, 0.0, -101.0, 9.0, 102.5, 0.0, 0.0}, at::kDouble).view({2, 5});
  const at::Tensor z =
      at::tensor({7.0, 9.0, 3.0, 0.0, 0.0, -100.0, 9.0, 73.5, 0.0, 0.0}, at::kDouble).view({2, 5});
  EXPECT_LT(max_abs_diff(spline()->to_z(u), z), 1e-10);
  EXPECT_NEAR(spline()->log_abs_det(u)[0].item<double>(), std::log(30.0 * 6.0), 1e-12);
}

}  // namespace
}  // namespace crais
