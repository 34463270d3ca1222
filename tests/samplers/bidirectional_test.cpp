// Reverse chains estimate 1/Z without bias, and with the forward ones they enclose log Z.
#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "estimates/estimate.h"
#include "estimates/method.h"
#include "samplers/coupled.h"
#include "samplers/plan.h"
#include "support/expect_error.h"
#include "support/reference_kernels.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;
using testing::Fault;
using testing::LogGamma;
using testing::ReferenceHmc;

constexpr int64_t kBothWays = 2000, kBothParticles = 4;

/// A target that hides its exact draws.
template <class Known>
struct NoDraws : Known {
  using Known::Known;
  std::optional<at::Tensor> exact_sample(int64_t, at::Generator&) const override { return {}; }
};

struct Setting {
  std::unique_ptr<Target> target;
  AffineMap base;
};

/// The base is wider than the target, so that reverse weights have light tails.
template <class Known = DiagonalGaussian>
Setting gaussian() {
  return {std::make_unique<Known>(kBothWays, std::vector<double>{0.6, -0.4},
                                  std::vector<double>{0.7, 0.8}, 2.5),
          AffineMap::identity(kBothWays, 2, at::kDouble)};
}

template <class Known = LogGamma>
Setting skewed() {
  const at::Tensor loc = at::tensor({1.0, 1.4}, at::kDouble).repeat({kBothWays, 1});
  const at::Tensor scale = at::tensor({0.9, 0.0, -0.1, 0.8}, at::kDouble).view({2, 2});
  return {std::make_unique<Known>(kBothWays, std::vector<double>{3.0, 4.0}),
          {loc, scale.repeat({kBothWays, 1, 1})}};
}

Plan plan_of(int64_t steps, double step_size) {
  return {at::linspace(0, 1, steps + 1, at::kDouble).unsqueeze(1),
          at::full({steps, 1}, step_size, at::kDouble), kBothParticles};
}

/// Zhat^-1 Z of each problem.
at::Tensor reverse_ratio(const Setting& s, const std::string& path_spec, const Transition& kernel,
                         const Plan& plan, uint64_t seed) {
  const auto path = PathRegistry::instance().make("path", path_spec);
  const Problem problem(borrow(*s.target), s.base, *s.target->true_log_normalizer() + 0.5);
  at::Generator rng = make_generator(seed);
  const AnnealResult run = anneal_reverse(problem, *path, plan, kernel, kBothParticles, rng);
  EXPECT_EQ(run.cost, Cost::with_gradient(kBothWays * kBothParticles *
                                          (1 + kernel.evaluations_per_step() * plan.num_steps())));
  return (log_mean_exp(run.log_w) + *s.target->true_log_normalizer()).exp();
}

TEST(AnnealBack, IsUnbiasedForOneOverZ) {
  uint64_t seed = 0;
  for (const auto& setting : {gaussian(), skewed()}) {
    for (const char* path : {"geometric", "power:0.5"}) {
      for (const auto& [kernel_spec, leapfrog] :
           {std::pair{"hmc", 1}, {"hmc", 3}, {"ghmc:0.9", 1}, {"ghmc:0.5", 2}}) {
        SCOPED_TRACE(::testing::Message() << path << " " << kernel_spec << " " << seed);
        const auto kernel = TransitionRegistry::instance().make("kernel", kernel_spec, {leapfrog});
        const at::Tensor ratio = reverse_ratio(setting, path, *kernel, plan_of(6, 0.9), ++seed);
        EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
        EXPECT_LT(testing::std_error(ratio), 0.03);
      }
    }
  }
}

TEST(AnnealBack, NotWithABrokenKernel) {
  const Plan plan = plan_of(24, 1.3);
  const auto z = [&](Fault fault, double persistence, const Setting& s) {
    const ReferenceHmc kernel(fault, 1, persistence);
    return std::abs(testing::z_score(reverse_ratio(s, "geometric", kernel, plan, 3), 1));
  };
  EXPECT_LT(z(Fault::kNone, 0, skewed()), 5);
  EXPECT_LT(z(Fault::kNone, 0.9, skewed()), 5);
  EXPECT_GT(z(Fault::kNoAccept, 0, gaussian()), 8);
  EXPECT_GT(z(Fault::kFlippedLastKick, 0, gaussian()), 8);
  EXPECT_GT(z(Fault::kWrongKinetic, 0, gaussian()), 8);
  EXPECT_GT(z(Fault::kWrongBeta, 0, gaussian()), 8);
  EXPECT_GT(z(Fault::kWrongRefresh, 0.9, skewed()), 8);
  EXPECT_GT(z(Fault::kNoFlip, 0.9, skewed()), 8);
}

TEST(AnnealBack, NeedsExactDraws) {
  const Setting s = gaussian();
  const Counting hidden(*s.target);  // passes no draws on
  const Problem problem(borrow(hidden), s.base);
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  at::Generator rng = make_generator(1);
  expect_error(ErrorKind::kArgument, {"exact draws"},
               [&] { anneal_reverse(problem, *path, plan_of(3, 0.5), *kernel, 2, rng); });
}

TEST(Bidirectional, EnclosesTheTruth) {
  for (const auto& s :
       {gaussian(), skewed(), gaussian<NoDraws<DiagonalGaussian>>(), skewed<NoDraws<LogGamma>>()}) {
    const std::shared_ptr<const Path> path = PathRegistry::instance().make("path", "geometric");
    const std::shared_ptr<const Transition> kernel =
        TransitionRegistry::instance().make("kernel", "ghmc:0.8", {1});
    const auto method = MethodRegistry::instance().make("method", "bidirectional",
                                                        AnnealingParts{path, kernel, nullptr});
    const bool is_exact = has_exact_draws(*s.target);
    EXPECT_TRUE(method->has_upper());
    const at::Tensor truth = *s.target->true_log_normalizer();
    double previous = INFINITY;
    for (const int64_t steps : {2, 8, 32}) {
      const Problem problem(borrow(*s.target), s.base, truth - 1.0);
      at::Generator rng = make_generator(static_cast<uint64_t>(steps));
      const MethodResult found = method->estimate(problem, plan_of(steps, 0.9), rng);
      const at::Tensor below = truth - found.estimate.value, above = found.upper->value - truth;
      EXPECT_GT(below.mean().item<double>(), -5 * testing::std_error(below)) << steps;
      EXPECT_GT(above.mean().item<double>(), -5 * testing::std_error(above)) << steps;
      const double gap = (below + above).mean().item<double>();
      if (is_exact) EXPECT_LT(gap, 0.5 * previous) << steps;  // and they close in
      previous = gap;
      EXPECT_EQ(found.distance.defined(), !is_exact);
      if (!is_exact && steps == 32) EXPECT_LT(found.distance.mean().item<double>(), 0.01);
    }
    EXPECT_LT(previous, 0.05);
  }
}

// Draws of the base in place of exact ones.
TEST(Bidirectional, HasNoUpperBoundFromOtherDraws) {
  const Setting s = gaussian();
  const Problem problem(borrow(*s.target), s.base);
  const auto path = PathRegistry::instance().make("path", "geometric");
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {1});
  at::Generator rng = make_generator(9);
  const at::Tensor z = s.base.to_z(problem.draw(kBothParticles, rng));
  const AnnealResult run = anneal_reverse(problem, *path, plan_of(2, 0.1), *kernel, z, rng);
  EXPECT_LT(testing::z_score(reverse_log_normalizer(run.log_w).value - 2.5, 0), -5);
}

}  // namespace
}  // namespace crais
