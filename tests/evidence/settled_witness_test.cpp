// A witness sees a neck that chains have missed, and nothing where they have been everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "evidence/rounds.h"
#include "support/targets.h"

namespace crais {
namespace {

constexpr int64_t kDim = 6;
constexpr double kNeck = 0.3, kShare = 0.5;

/// 0.5 N(0, I) and, in its middle, 0.5 N(0, 0.3^2 I), in six dimensions.
FunctionTarget with_a_neck() {
  const auto density = [](const at::Tensor& z) {
    const at::Tensor square = z.square().sum(-1);
    return at::logaddexp(
        -0.5 * square + std::log(1 - kShare),
        -0.5 * square / (kNeck * kNeck) + std::log(kShare) - kDim * std::log(kNeck));
  };
  return testing::replicated(kDim, density, 5);
}

/// What a witness says of 5 x `draws` draws of which `share` are from the neck, under a plan with
/// or without moves.
SettledShare witness_of(double share, int64_t draws = 100, bool moves = true) {
  EstimateOptions options{.base = "prior", .witness = true};
  const EstimatorParts parts(options);
  const FunctionTarget target = with_a_neck();
  const Problem problem(target.shared(), target.prior_base());
  at::Generator rng = make_generator(11);
  const at::Tensor e = at::empty({5, draws, kDim}, at::kDouble).normal_(0, 1, rng);
  const at::Tensor is_neck = at::empty({5, draws, 1}, at::kDouble).uniform_(0, 1, rng) < share;
  const WeightedParticles found{
      at::where(is_neck, kNeck * e, e), at::zeros({5, draws}, at::kDouble), {}};
  const Plan plan = moves ? Plan{at::linspace(0, 1, 3, at::kDouble).unsqueeze(1),
                                 at::full({2, 1}, 0.3, at::kDouble), draws}
                          : Plan::without_moves(5, draws);
  Cost cost;
  const SettledShare settled = settled_share(parts, problem, plan, found, 0, cost);
  EXPECT_EQ(cost.densities, num_witnesses(kDim) * 11 * witness_sweeps(kDim) +
                                std::min(5 * draws, kMostForward) + num_witnesses(kDim));
  return settled;
}

TEST(SettledWitness, SeesANeckOnlyWhereChainsHaveMissedIt) {
  const SettledShare settled = witness_of(0);
  EXPECT_LT(settled.expected, 0.01);
  EXPECT_GT(settled.above, 0.1);
  EXPECT_NEAR(1 / settled.num_effective, 1.0 / num_witnesses(kDim) + 1.0 / 500, 1e-9);
  EXPECT_LT(witness_of(kShare).above, 0.03);
}

/// Draws of the base come without step sizes, and in great numbers: it looks at some of them.
TEST(SettledWitness, LooksAtSomeOfManyDraws) {
  const SettledShare missed = witness_of(0, 10'000, /*moves=*/false);
  EXPECT_GT(missed.above, 0.1);
  EXPECT_NEAR(1 / missed.num_effective, 1.0 / num_witnesses(kDim) + 1.0 / kMostForward, 1e-9);
  EXPECT_LT(witness_of(kShare, 10'000, /*moves=*/false).above, 0.03);
}

}  // namespace
}  // namespace crais
