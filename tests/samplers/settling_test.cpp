// Particles settle to the density that they move under, wherever they began.
#include "samplers/settling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "targets/function_target.h"

namespace crais {
namespace {

/// 3/4 N(-1, 1) + 1/4 N(1, 0.5^2), in parts that are those normals.
struct TwoNormals {
  FunctionTarget target{
      FunctionTargetOptions{1, 1, at::kDouble},
      FunctionTarget::IndexedLogDensity([](const at::Tensor& z, const at::Tensor&) {
        const at::Tensor x = z.select(-1, 0);
        return at::logaddexp(-0.5 * (x + 1).square() + std::log(0.75),
                             -2 * (x - 1).square() + std::log(0.25 * 2));
      })};
  AffineMap normals{at::tensor({-1.0, 1.0}, at::kDouble).view({2, 1}),
                    at::tensor({1.0, 0.5}, at::kDouble).view({2, 1, 1})};
  Partition partition{at::zeros({2}, at::kLong), at::tensor({0.75, 0.25}, at::kDouble).log(), 1};
  PartitionedTarget parts{target, normals, partition};
};

TEST(Settling, LeavesTheStartBehind) {
  const TwoNormals two;
  at::Generator rng = make_generator(5);
  const auto kernel = TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
  // All in the middle of the lesser normal.
  const Settled found = settle(two.parts, two.normals, at::full({2000, 1}, 1.0, at::kDouble),
                               at::full({2}, 1.0, at::kDouble), *kernel, 30, rng);
  EXPECT_NEAR(found.z.mean().item<double>(), -0.5, 0.15);
  EXPECT_NEAR(found.z.square().mean().item<double>(), 0.75 * 2 + 0.25 * 1.25, 0.2);
  EXPECT_EQ(found.passed.size(0), 29 * 2000);
  const auto longer = TransitionRegistry::instance().make("kernel", "ghmc:0.8", {3});
  const Settled slow = settle(two.parts, two.normals, at::full({5, 1}, 1.0, at::kDouble),
                              at::full({2}, 1.0, at::kDouble), *longer, 2, rng);
  EXPECT_EQ(slow.cost.densities, 5 * settling_evaluations(*longer, 2));
  EXPECT_EQ(slow.cost.densities, 5 * 2 * 31);
}

TEST(Settling, LabelsAreDrawnByResponsibility) {
  const TwoNormals two;
  at::Generator rng = make_generator(6);
  const at::Tensor z = at::full({1, 20'000, 1}, 0.4, at::kDouble);
  const auto whole = std::static_pointer_cast<const PartitionedTarget>(
      two.parts.select(at::zeros({1}, at::kLong)));
  const double share =
      draw_labels(whole->log_components(z), rng).to(at::kDouble).mean().item<double>();
  const double left = 0.75 * std::exp(-0.5 * 1.4 * 1.4), right = 0.5 * std::exp(-2 * 0.6 * 0.6);
  EXPECT_NEAR(share, right / (left + right), 0.01);
}

}  // namespace
}  // namespace crais
