#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "estimates/estimate.h"

namespace crais {
namespace {

at::Tensor uniform(at::IntArrayRef sizes, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::rand(sizes, rng, at::kDouble);
}

/// log of w = U^-k: a Pareto tail of shape k.
at::Tensor pareto_log_weights(double k, int64_t num, uint64_t seed) {
  return -k * uniform({20, num}, seed).log();
}

TEST(ParetoK, FindsTheShapeOfATail) {
  for (const double k : {0.3, 0.7, 1.2}) {
    const at::Tensor found = pareto_k(pareto_log_weights(k, 20000, 1));
    EXPECT_NEAR(found.mean().item<double>(), k, 0.06) << k;
    EXPECT_LT(found.std().item<double>(), 0.15) << k;
  }
}

TEST(ParetoK, IsLowForBoundedWeights) {
  EXPECT_LT(pareto_k(uniform({20, 5000}, 3).log()).max().item<double>(), 0.1);
}

TEST(ParetoK, SaysWhereItCannotTell) {
  EXPECT_TRUE(pareto_k(pareto_log_weights(0.5, 95, 4)).isnan().all().item<bool>());
  EXPECT_FALSE(pareto_k(pareto_log_weights(0.5, 96, 4)).isnan().any().item<bool>());
  EXPECT_EQ(pareto_k(at::zeros({1, 200}, at::kDouble)).item<double>(), -INFINITY);
  at::Generator rng = make_generator(5);  // equal but for rounding
  const at::Tensor noise = 1e-14 * at::empty({1, 200}, at::kDouble).normal_(0, 1, rng);
  EXPECT_EQ(pareto_k(noise - 3).item<double>(), -INFINITY);
}

}  // namespace
}  // namespace crais
