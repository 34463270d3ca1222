#include "samplers/blocks.h"

#include <gtest/gtest.h>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::Counting;
using testing::DiagonalGaussian;

constexpr int64_t kDim = 512, kBlockSteps = 3;

/// Two problems whose chains do not fit into a block: 1024 each at this dimension.
struct BlockSetting {
  DiagonalGaussian gaussian{2, std::vector<double>(kDim, 0.02), std::vector<double>(kDim, 0.99),
                            1.5};
  Counting target{gaussian};  // knows no exact draws
  AffineMap base{at::zeros({2, kDim}, at::kDouble), at::ones({2, kDim}, at::kDouble)};
  Problem problem{borrow(target), base};
  std::unique_ptr<Path> path = PathRegistry::instance().make("path", "geometric");
  std::unique_ptr<Transition> kernel = TransitionRegistry::instance().make("kernel", "hmc", {});
  Plan plan = freeze(
      *ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{kBlockSteps}), 0.2);
};

TEST(Blocks, ManyChainsNeverMeetInMemory) {
  const BlockSetting s;
  constexpr int64_t kChains = 2500;
  at::Generator rng = make_generator(4);
  const AnnealResult run = anneal_in_blocks(s.problem, *s.path, s.plan, *s.kernel, kChains, rng);
  EXPECT_EQ(s.target.most_rows, 2 * 1024);
  EXPECT_EQ(run.cost.gradients, 2 * kChains * (1 + kBlockSteps));
  EXPECT_EQ(run.cost.gradients, s.target.gradients);
  ASSERT_EQ(run.log_w.sizes(), at::IntArrayRef({2, kChains}));
  EXPECT_TRUE(at::equal(run.genealogy.roots,
                        at::arange(kChains).expand({2, kChains})));  // each its own ancestor
  EXPECT_EQ(run.accept_prob.sizes(), at::IntArrayRef({kBlockSteps, 2}));
  EXPECT_GT(run.accept_prob.min().item<double>(), 0.3);
  EXPECT_LE(run.accept_prob.max().item<double>(), 1.0);
  // No block repeats another's numbers, and all estimate one normaliser.
  EXPECT_FALSE(at::equal(run.log_w.slice(1, 0, 400), run.log_w.slice(1, 1024, 1424)));
  const at::Tensor error = (log_mean_exp(run.log_w) - 1.5).abs();
  const at::Tensor spread = run.log_w.std(1) / std::sqrt(double(kChains));
  EXPECT_TRUE((error < 5 * spread).all().item<bool>()) << error << spread;
}

TEST(Blocks, TheWayBackToo) {
  const BlockSetting s;
  constexpr int64_t kChains = 1500;
  const Problem problem(borrow(s.gaussian), s.base);
  at::Generator rng = make_generator(5);
  const AnnealResult run =
      anneal_reverse_in_blocks(problem, *s.path, s.plan, *s.kernel, kChains, rng);
  ASSERT_EQ(run.log_w.sizes(), at::IntArrayRef({2, kChains}));
  EXPECT_FALSE(at::equal(run.log_w.slice(1, 0, 400), run.log_w.slice(1, 1024, 1424)));
  const at::Tensor error = (-log_mean_exp(run.log_w) - 1.5).abs();
  const at::Tensor spread = run.log_w.std(1) / std::sqrt(double(kChains));
  EXPECT_TRUE((error < 5 * spread).all().item<bool>()) << error << spread;
}

/// Problems that differ, each with a plan of its own: what a block takes must be its own.
TEST(Blocks, ResampledChainsStayTogether) {
  const BlockSetting s;
  for (const char* spec : {"systematic:1", "multinomial:1"}) {
    SCOPED_TRACE(spec);
    const auto resampling = ResamplingRegistry::instance().make("resampling", spec);
    const at::Tensor index = at::arange(3, at::kLong);
    const DiagonalGaussian target(0.02 * (1 + index.unsqueeze(1)).to(at::kDouble).expand({3, kDim}),
                                  at::full({3, kDim}, 0.99, at::kDouble), index.to(at::kDouble));
    const Problem problem(borrow(target),
                          AffineMap(at::zeros({3, kDim}, at::kDouble),
                                    0.95 + 0.01 * index.unsqueeze(1).to(at::kDouble) *
                                               at::ones({3, kDim}, at::kDouble)),
                          1.5 * index.to(at::kDouble));
    Plan plan = s.plan;
    plan.betas = at::pow(s.plan.betas, (1 + index).to(at::kDouble));
    plan.step_sizes = s.plan.step_sizes * (1 + index).to(at::kDouble);
    constexpr int64_t kChains = 900;  // two problems make a block, the third another
    at::Generator one = make_generator(6), other = make_generator(6);
    const AnnealResult run =
        anneal_in_blocks(problem, *s.path, plan, *s.kernel, kChains, one, resampling.get());
    EXPECT_EQ(run.cost.gradients, 3 * kChains * (1 + kBlockSteps));
    int64_t done = 0;
    for (const at::Tensor& part : {index.slice(0, 0, 2), index.slice(0, 2, 3)}) {
      const AnnealResult expected = anneal(problem.select(part), *s.path, select(plan, part),
                                           *s.kernel, kChains, other, resampling.get());
      const auto rows = [&](const at::Tensor& x, int64_t dim) {
        return x.slice(dim, done, done + part.size(0));
      };
      EXPECT_TRUE(at::equal(rows(run.log_w, 0), expected.log_w));
      EXPECT_TRUE(at::equal(rows(run.genealogy.roots, 0), expected.genealogy.roots));
      EXPECT_TRUE(
          at::equal(rows(run.genealogy.num_resamplings, 0), expected.genealogy.num_resamplings));
      EXPECT_EQ(run.genealogy.independent_draws, expected.genealogy.independent_draws);
      EXPECT_TRUE(at::equal(rows(run.accept_prob, 1), expected.accept_prob));
      EXPECT_TRUE(at::equal(rows(run.betas, 1), expected.betas));
      EXPECT_TRUE(at::equal(rows(run.step_sizes, 1), expected.step_sizes));
      done += part.size(0);
    }
    EXPECT_GT(run.genealogy.num_resamplings.min().item<double>(), 0);
    EXPECT_FALSE(at::equal(run.genealogy.roots, at::arange(kChains).expand({3, kChains})));
    const at::Tensor error = log_mean_exp(run.log_w) - index;
    EXPECT_LT(error.abs().max().item<double>(), 0.6) << error;
  }
}

}  // namespace
}  // namespace crais
