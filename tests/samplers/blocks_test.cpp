#include "samplers/blocks.h"

#include <gtest/gtest.h>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;

constexpr int64_t kDim = 512, kSteps = 3;

/// Two problems whose chains do not fit into a block: 1024 each at this dimension.
struct Setting {
  DiagonalGaussian gaussian{2, std::vector<double>(kDim, 0.02), std::vector<double>(kDim, 0.99),
                            1.5};
  Counting target{gaussian};  // knows no exact draws
  AffineMap base{at::zeros({2, kDim}, at::kDouble), at::ones({2, kDim}, at::kDouble)};
  Problem problem{target, base};
  std::unique_ptr<Path> path = PathRegistry::instance().make("path", "geometric");
  std::unique_ptr<Transition> kernel = TransitionRegistry::instance().make("kernel", "hmc", {});
  Plan plan = freeze(
      *ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kSteps}), 0.2);
};

TEST(Blocks, HoldAMillionNumbersOrOneChain) {
  EXPECT_EQ(chains_per_block(2, kDim), 1024);
  EXPECT_EQ(chains_per_block(64, 50), 327);
  EXPECT_EQ(chains_per_block(1000, 4096), 1);
}

TEST(Blocks, FewChainsAreOneBlock) {
  const Setting s;
  at::Generator one = make_generator(3), other = make_generator(3);
  const AnnealResult whole = anneal(s.problem, *s.path, s.plan, *s.kernel, 7, one);
  const AnnealResult blocks = anneal_in_blocks(s.problem, *s.path, s.plan, *s.kernel, 7, other);
  EXPECT_TRUE(at::equal(whole.log_w, blocks.log_w));
  EXPECT_TRUE(blocks.particles.e.defined());
}

TEST(Blocks, ManyChainsNeverMeetInMemory) {
  const Setting s;
  constexpr int64_t kChains = 2500;
  at::Generator rng = make_generator(4);
  const AnnealResult run = anneal_in_blocks(s.problem, *s.path, s.plan, *s.kernel, kChains, rng);
  EXPECT_EQ(s.target.most_rows, 2 * 1024);
  EXPECT_EQ(s.problem.cost().gradients, 2 * kChains * (1 + kSteps));
  ASSERT_EQ(run.log_w.sizes(), at::IntArrayRef({2, kChains}));
  EXPECT_TRUE(at::equal(run.genealogy.roots,
                        at::arange(kChains).expand({2, kChains})));  // each its own ancestor
  EXPECT_EQ(run.accept_prob.sizes(), at::IntArrayRef({kSteps, 2}));
  EXPECT_GT(run.accept_prob.min().item<double>(), 0.3);
  EXPECT_LE(run.accept_prob.max().item<double>(), 1.0);
  // No block repeats another's numbers, and all estimate one normaliser.
  EXPECT_FALSE(at::equal(run.log_w.slice(1, 0, 400), run.log_w.slice(1, 1024, 1424)));
  const at::Tensor error = (log_mean_exp(run.log_w) - 1.5).abs();
  const at::Tensor spread = run.log_w.std(1) / std::sqrt(double(kChains));
  EXPECT_TRUE((error < 5 * spread).all().item<bool>()) << error << spread;
}

TEST(Blocks, TheWayBackToo) {
  const Setting s;
  constexpr int64_t kChains = 1500;
  const Problem problem(s.gaussian, s.base);
  at::Generator rng = make_generator(5);
  const AnnealResult run = anneal_back_in_blocks(problem, *s.path, s.plan, *s.kernel, kChains, rng);
  ASSERT_EQ(run.log_w.sizes(), at::IntArrayRef({2, kChains}));
  EXPECT_FALSE(at::equal(run.log_w.slice(1, 0, 400), run.log_w.slice(1, 1024, 1424)));
  const at::Tensor error = (-log_mean_exp(run.log_w) - 1.5).abs();
  const at::Tensor spread = run.log_w.std(1) / std::sqrt(double(kChains));
  EXPECT_TRUE((error < 5 * spread).all().item<bool>()) << error << spread;
}

TEST(Blocks, ResampledChainsStayTogether) {
  const Setting s;
  const auto resampling = ResamplingRegistry::instance().make("resampling", "systematic:1");
  at::Generator rng = make_generator(6);
  anneal_in_blocks(s.problem, *s.path, s.plan, *s.kernel, 1500, rng, resampling.get());
  EXPECT_EQ(s.target.most_rows, 2 * 1500);
}

}  // namespace
}  // namespace crais
