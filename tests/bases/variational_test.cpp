// The variational base: known optima, bounds that never fall, and what a round costs.

#include <gtest/gtest.h>

#include <cmath>

#include "bases/base.h"
#include "core/rng.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;
using testing::max_abs_diff;

Base fitted_by(const std::string& spec, const Target& target, uint64_t seed = 1) {
  at::Generator rng = make_generator(seed);
  return make_base(spec)->build(target, rng);
}

/// For log gamma = a z - exp(z) the nearest normal has the mean log a - 1 / (2 a) and the variance
/// 1 / a. The fit at the mode has the same variance, and the mean log a.
TEST(Variational, FindsTheNearestNormalOfASkewedDensity) {
  const LogGamma target(1, {3.0, 0.8});
  const at::Tensor shape = at::tensor({3.0, 0.8}, at::kDouble);
  const Base base = fitted_by("variational:1,rounds=20,pairs=2000", target);
  EXPECT_LT(max_abs_diff(base.map.loc()[0], shape.log() - 0.5 / shape), 0.05);
  EXPECT_GT(max_abs_diff(fitted_by("laplace", target).map.loc()[0], base.map.loc()[0]), 0.5);
  const at::Tensor wide = fitted_by("variational:1.5,rounds=20,pairs=2000", target).map.matrix();
  EXPECT_LT(max_abs_diff(wide, 1.5 * base.map.matrix()), 1e-12);
}

/// The mean of log gamma - log q by fresh draws, but for a constant that all share.
double evidence_bound(const Target& target, const AffineMap& q) {
  at::Generator rng = make_generator(99);
  const at::Tensor e = fill_normal(at::empty({1, 200'000, q.dim()}, q.options()), rng);
  return (target.log_density(q.to_z(e)) + 0.5 * e.square().sum(-1)).mean().item<double>() +
         q.log_abs_det().item<double>();
}

TEST(Variational, RaisesTheBoundOfAFit) {
  const LogGamma target(1, {2.0, 0.8, 5.0});
  const Base fit = fitted_by("laplace", target);
  const double least = evidence_bound(target, fit.map) + 0.05;
  for (const char* spec : {"variational", "variational:1,observed=1"})
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_GT(evidence_bound(target, fitted_by(spec, target, seed).map), least) << spec;
  // Without curvatures the mean moves, and the shape stays that of the fit.
  const Base base = fitted_by("variational:1,rounds=3,pairs=64,curvatures=0", target);
  EXPECT_LT(max_abs_diff(base.map.matrix(), fit.map.matrix()), 1e-12);
  EXPECT_GT(evidence_bound(target, base.map), least);
}

/// Says that it is half as wide as it is.
class Stiff : public DiagonalGaussian {
 public:
  Stiff() : DiagonalGaussian(3, {1.0, -2.0, 0.5}, {0.3, 0.5, 2.0}, 0.7) {}
  at::Tensor curvature(const at::Tensor& z) const override {
    return 4 * DiagonalGaussian::curvature(z);
  }
};

TEST(Variational, ObservesTheCurvatureThatATargetMisstates) {
  const Stiff target;
  const at::Tensor sd = at::diag(at::tensor({0.3, 0.5, 2.0}, at::kDouble)).expand({3, 3, 3});
  const Base base = fitted_by("variational:1,rounds=99,pairs=2,observed=1", target);
  EXPECT_LT(max_abs_diff(fitted_by("variational", target).map.matrix(), 0.5 * sd), 1e-9);
  EXPECT_LT(max_abs_diff(base.map.matrix(), sd), 1e-3);
  const DiagonalGaussian exact(3, {1.0, -2.0, 0.5}, {0.3, 0.5, 2.0}, 0.7);  // whose fit stays
  const Base same = fitted_by("variational:1,observed=1", exact);
  EXPECT_LT(max_abs_diff(same.map.loc(), fitted_by("laplace", exact).map.loc()), 1e-9);
  EXPECT_LT(max_abs_diff(same.map.matrix(), sd), 1e-9);
  Cost cost = fitted_by("laplace", target).cost;
  cost += 3 * 99 * Cost{2 * (3 + 2), 2 * 3};  // three pairs, and two again after the step
  EXPECT_EQ(base.cost, cost);
}

TEST(Variational, RefinesEveryPart) {
  const FunctionTarget target({1, 1}, [](const at::Tensor& z, const at::Tensor&) {
    const auto skewed = [](const at::Tensor& y) { return 2 * y - y.exp(); };
    const at::Tensor x = z.squeeze(-1);
    return at::logaddexp(skewed(x - 6), skewed(-x - 6));
  });
  const Base modes = fitted_by("modes:1,starts=8", target);
  const Base base = fitted_by("variational:1,from=modes,pairs=500", target);
  ASSERT_TRUE(modes.partition && base.partition);
  ASSERT_EQ(base.map.num_problems(), base.partition->problem.numel());
  const double middle = 6 + std::log(2.0) - 0.25;
  for (int64_t part = 0; part < 2; ++part)
    EXPECT_NEAR(std::abs(base.map.loc()[part].item<double>()), middle, 0.1);
}

}  // namespace
}  // namespace crais
