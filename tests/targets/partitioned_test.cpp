// Parts of a partition of unity: their densities and gradients, and that their normalisers add up.
#include "targets/partitioned.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/method.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "targets/replicated.h"

namespace crais {
namespace {

using testing::max_abs_diff;

/// 0.7 N(-3, 0.5^2) + 0.3 N(2, 1) in each of P problems, in the plane, times e^2; draws are exact.
class TwoModes : public Replicated {
 public:
  explicit TwoModes(int64_t num_problems) : Replicated({num_problems, at::kDouble, ""}, 2, kLogZ) {}
  at::Tensor log_density(const at::Tensor& z) const override {
    const at::Tensor left = -2 * (z + 3).square().sum(-1) + std::log(0.7 * 4);
    const at::Tensor right = -0.5 * (z - 2).square().sum(-1) + std::log(0.3);
    return at::logaddexp(left, right) - std::log(2 * M_PI) + kLogZ;
  }
  static constexpr double kLogZ = 2.0;

 protected:
  std::optional<at::Tensor> draw(const at::Tensor& like, at::Generator& rng) const override {
    const at::Tensor e = at::empty_like(like).normal_(0, 1, rng);
    const at::Tensor is_left = at::empty_like(like.narrow(-1, 0, 1)).uniform_(0, 1, rng) < 0.7;
    return at::where(is_left, 0.5 * e - 3, e + 2);
  }
};

/// Normals that fit the modes badly, as a search might leave them, with shares that are wrong.
struct Parts {
  explicit Parts(int64_t problems)
      : partition{at::arange(problems, at::kLong).repeat_interleave(2),
                  at::tensor({std::log(0.4), std::log(0.6)}, at::kDouble).repeat({problems}),
                  problems},
        map(at::tensor({-2.7, -3.1, 1.8, 2.3}, at::kDouble).view({2, 2}).repeat({problems, 1}),
            at::tensor({0.6, 0.0, 0.1, 0.5, 1.2, 0.0, -0.2, 0.9}, at::kDouble)
                .view({2, 2, 2})
                .repeat({problems, 1, 1})) {}
  Partition partition;
  AffineMap map;
};

TEST(PartitionedTarget, PartsAddUpToTheDensity) {
  const TwoModes whole(3);
  const Parts parts(3);
  const PartitionedTarget target(whole, parts.map, parts.partition);
  at::Generator rng = make_generator(1);
  const at::Tensor z = at::empty({3, 40, 2}, at::kDouble).normal_(0, 3, rng);
  const at::Tensor rows = z.repeat_interleave(2, 0);
  const at::Tensor sum = parts.partition.log_sum_exp(target.log_density(rows));
  EXPECT_LT(max_abs_diff(sum, whole.log_density(z)), 1e-12);
}

TEST(PartitionedTarget, GradientIsThatOfItsDensity) {
  const TwoModes whole(2);
  const Parts parts(2);
  const PartitionedTarget target(whole, parts.map, parts.partition);
  at::Generator rng = make_generator(2);
  const at::Tensor z = at::empty({4, 30, 2}, at::kDouble).normal_(0, 2, rng);
  const Evaluation by_hand = target.evaluate(z), by_autograd = target.Target::evaluate(z);
  EXPECT_LT(max_abs_diff(by_hand.log_density, by_autograd.log_density), 1e-12);
  EXPECT_LT(max_abs_diff(by_hand.grad, by_autograd.grad), 1e-10);
}

TEST(PartitionedTarget, SelectKeepsThePartsOfAProblem) {
  const TwoModes whole(3);
  const Parts parts(3);
  const PartitionedTarget target(whole, parts.map, parts.partition);
  const at::Tensor index = at::tensor({5, 0}, at::kLong);
  at::Generator rng = make_generator(3);
  const at::Tensor z = at::empty({6, 8, 2}, at::kDouble).normal_(0, 2, rng);
  EXPECT_LT(max_abs_diff(target.select(index)->log_density(z.index_select(0, index)),
                         target.log_density(z).index_select(0, index)),
            1e-12);
}

/// Estimates of P replicates by a method on the parts, with `shift` added to the log shares of the
/// first part in what the method is told (a broken twin) and not in the target.
MethodResult estimated(const char* name, int64_t problems, double shift = 0) {
  const c10::NoGradGuard no_grad;
  const TwoModes whole(problems);
  const Parts parts(problems);
  const auto target = std::make_shared<PartitionedTarget>(whole, parts.map, parts.partition);
  Problem problem(target, parts.map);
  Partition told = parts.partition;
  told.log_share = told.log_share + at::tensor({shift, 0.0}, at::kDouble).repeat({problems});
  problem.set_partition(told);
  const std::shared_ptr<const Path> path = PathRegistry::instance().make("path", "geometric");
  const std::shared_ptr<const Transition> kernel =
      TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
  const auto rule = ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{8});
  Plan plan = freeze(*rule, 0.4);
  plan.num_particles = 6;
  at::Generator rng = make_generator(4);
  const auto method =
      MethodRegistry::instance().make("method", name, AnnealingParts{path, kernel, nullptr, true});
  return merged(method->estimate(problem, plan, rng), parts.partition);
}

TEST(PartitionedTarget, EstimatesAreUnbiased) {
  const MethodResult found = estimated("ais", 600);
  EXPECT_EQ(found.estimate.value.size(0), 600);
  EXPECT_EQ(found.log_w.sizes(), (at::IntArrayRef{600, 6}));
  const at::Tensor ratio = (found.estimate.value - TwoModes::kLogZ).exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
  // Particles of all parts, weighted: their mean weight estimates Z too.
  const at::Tensor by_particles = log_mean_exp(found.particles->log_w);
  EXPECT_LT(max_abs_diff(by_particles, found.estimate.value), 1e-10);
}

TEST(PartitionedTarget, BackwardChainsAreUnbiasedForTheInverse) {
  const MethodResult found = estimated("bidirectional", 600);
  ASSERT_TRUE(found.upper);
  EXPECT_EQ(found.reverse_log_w.sizes(), (at::IntArrayRef{600, 6}));
  const at::Tensor inverse = (TwoModes::kLogZ - found.upper->value).exp();
  EXPECT_LT(std::abs(testing::z_score(inverse, 1)), 5);
  const MethodResult broken = estimated("bidirectional", 600, 0.5);
  EXPECT_GT(std::abs(testing::z_score((TwoModes::kLogZ - broken.upper->value).exp(), 1)), 5);
}

/// With resampling chains know of each other, and variances of the parts add up.
TEST(PartitionedTarget, VariancesOfPartsAddUp) {
  const Partition partition{at::tensor({0, 0}, at::kLong), at::zeros({2}, at::kDouble), 1};
  MethodResult parts;
  const at::Tensor value = at::tensor({std::log(3.0), std::log(1.0)}, at::kDouble);
  parts.estimate = {value, at::tensor({0.1, 0.2}, at::kDouble), at::zeros({2}, at::kDouble),
                    at::tensor({0.5, 0.8}, at::kDouble), at::tensor({0.1, 0.3}, at::kDouble)};
  const Estimate sum = merged(parts, partition).estimate;
  EXPECT_NEAR(sum.value.item<double>(), std::log(4.0), 1e-12);
  EXPECT_NEAR(sum.std_error.item<double>(), std::hypot(0.75 * 0.1, 0.25 * 0.2), 1e-12);
}

}  // namespace
}  // namespace crais
