// Bases: exact where the target is Gaussian, honest about their cost, safe where fits fail.
#include <gtest/gtest.h>

#include <cmath>

#include "bases/climb.h"
#include "core/log_math.h"
#include "core/rng.h"
#include "samplers/importance.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "util/interrupt.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;
using testing::max_abs_diff;

/// N(mean, L L^T) times exp(log_c), correlated.
class CorrelatedGaussian : public Target {
 public:
  CorrelatedGaussian(int64_t num_problems, double scale)
      : root_(scale *
              at::tensor({1.0, 0.0, 0.0, -0.7, 0.5, 0.0, 0.4, 0.9, 2.0}, at::kDouble).view({3, 3})),
        mean_(at::tensor({1.5, -2.0, 0.3}, at::kDouble)),
        num_problems_(num_problems) {}

  int64_t num_problems() const override { return num_problems_; }
  int64_t dim() const override { return 3; }
  at::Tensor log_density(const at::Tensor& z) const override {
    const at::Tensor e = at::matmul(z - mean_, at::inverse(root_).t());
    return kLogC - 0.5 * e.square().sum(-1) - 1.5 * std::log(2 * M_PI) -
           root_.diagonal().log().sum();
  }
  at::Tensor covariance() const { return at::matmul(root_, root_.t()); }
  const at::Tensor& mean() const { return mean_; }

  static constexpr double kLogC = -3.25;

 private:
  at::Tensor root_, mean_;
  int64_t num_problems_;
};

/// Bimodal in its first coordinate, so that the Hessian at 0 is indefinite.
FunctionTarget bimodal() {
  return FunctionTarget({4, 2}, [](const at::Tensor& z) {
    const at::Tensor x = z.select(-1, 0), y = z.select(-1, 1);
    return at::logaddexp(-2 * (x - 2).square(), -2 * (x + 1.5).square()) - (y - x).square();
  });
}

Base build(const std::string& spec, const Target& target, uint64_t seed = 1, bool one = false) {
  at::Generator rng = make_generator(seed);
  return make_base(spec, {.one_density = one})->build(target, rng);
}

TEST(Laplace, IsExactForGaussians) {
  const CorrelatedGaussian target(2, 0.3);
  const Base base = build("laplace", target);
  EXPECT_FALSE(base.fell_back.any().item<bool>());
  EXPECT_LT(max_abs_diff(base.map.loc(), target.mean().expand({2, 3})), 1e-12);
  const at::Tensor root = base.map.matrix()[1];
  EXPECT_LT(max_abs_diff(at::matmul(root, root.t()), target.covariance()), 1e-12);
  at::Generator rng = make_generator(2);
  const at::Tensor log_w = importance_log_weights({borrow(target), base.map}, 1, rng).log_w;
  EXPECT_LT((log_w - CorrelatedGaussian::kLogC).abs().max().item<double>(), 1e-12);
}

TEST(Laplace, FindsModeAndCurvatureOfASkewedDensity) {
  const LogGamma target(1, {3.0, 0.5});
  const Base base = build("laplace", target);
  const at::Tensor shape = at::tensor({3.0, 0.5}, at::kDouble);
  EXPECT_LT(max_abs_diff(base.map.loc()[0], shape.log()), 1e-6);
  EXPECT_LT(max_abs_diff(base.map.matrix()[0].diagonal(), shape.rsqrt()), 1e-6);
  const Base wide = build("laplace:1.5", target);
  EXPECT_LT(max_abs_diff(wide.map.matrix(), 1.5 * base.map.matrix()), 1e-14);
}

TEST(Laplace, ClimbsOutOfASaddle) {
  const FunctionTarget target = bimodal();
  const Base base = build("laplace", target);
  EXPECT_FALSE(base.fell_back.any().item<bool>());
  const Evaluation at_mode = target.evaluate(base.map.loc().unsqueeze(1));
  EXPECT_LT(at_mode.grad.abs().max().item<double>(), 1e-3);
  EXPECT_GT(base.map.loc().abs().min().item<double>(), 1.0);
}

/// Waves under a normal: a mode every half unit, the heaviest at 1.5. In one dimension a sweep
/// finds them; beyond three dimensions batches of starts do.
TEST(Modes, OfAnImageAreSoughtUntilNoneIsLeft) {
  const auto waves = [](int64_t dim) {
    return FunctionTarget({16, dim}, [](const at::Tensor& z, const at::Tensor&) {
      const at::Tensor x = z.select(-1, 0) - 2;
      return 4 * (4 * M_PI * x).cos() - 3 * x.square() - 0.5 * z.square().sum(-1);
    });
  };
  for (const int64_t dim : {1, 5}) {
    const Base found = build("modes", waves(dim));
    EXPECT_LT((found.main_parts().loc().select(1, 0) - 1.5).abs().max().item<double>(), 0.05);
    ASSERT_TRUE(found.partition);
    EXPECT_GE(found.partition->counts().to(at::kDouble).mean().item<double>(), 3.8);
    EXPECT_LE(found.ambiguous.sum().item<int64_t>(), dim == 1 ? 0 : 8);
  }
  EXPECT_TRUE(build("modes:1,batches=1", waves(5)).ambiguous.any().item<bool>());
}

TEST(Modes, OfAnImageWithOneModeTakeFewStarts) {
  const LogGamma single(4, {3.0, 0.5, 1.0, 2.0});
  const Base base = build("modes", single);
  EXPECT_FALSE(base.partition);
  EXPECT_FALSE(base.ambiguous.any().item<bool>());
  EXPECT_FALSE(build("modes", single, 1, /*one=*/true).partition) << "climbs that did not arrive";
  EXPECT_LT(static_cast<double>(base.cost.gradients),
            4 * *make_base("modes:1,batches=1")->expected_cost(single));
}

/// Slopes around `centres` [P]: the farther a centre from 0, where the fit begins, the more rounds.
FunctionTarget slopes(const at::Tensor& centres) {
  return FunctionTarget({centres.size(0), 1}, [=](const at::Tensor& z, const at::Tensor& index) {
    const at::Tensor x = z.select(-1, 0) - centres.index_select(0, index).unsqueeze(1);
    return -(1 + x.square()).sqrt();
  });
}

TEST(Climb, EndsForEachProblemWhereItHasArrived) {
  const auto climbed = [](const at::Tensor& centres, Cost& cost) {
    const FunctionTarget target = slopes(centres);
    return climb(target, at::zeros({centres.size(0), 1}, at::kDouble), 30, 1e-6, cost);
  };
  const at::Tensor centres = at::tensor({0.0, 12.0, 3.0}, at::kDouble);
  Cost all;
  const Mode together = climbed(centres, all);
  EXPECT_LT((together.z.flatten() - centres).abs().max().item<double>(), 1e-3);
  EXPECT_FALSE(together.failed.any().item<bool>());
  // Each goes its own way, whoever is beside it.
  std::vector<Cost> alone(3);
  for (int64_t p = 0; p < 3; ++p) {
    const Mode one = climbed(centres.slice(0, p, p + 1), alone[static_cast<size_t>(p)]);
    EXPECT_TRUE(at::equal(one.z[0], together.z[p]));
    EXPECT_TRUE(at::equal(one.root[0], together.root[p]));
  }
  EXPECT_EQ(all.gradients, alone[0].gradients + alone[1].gradients + alone[2].gradients);
  EXPECT_LT(3 * alone[0].gradients, alone[1].gradients);
}

TEST(Laplace, FallsBackProblemByProblem) {
  const FunctionTarget broken({3, 2}, [](const at::Tensor& z) {
    const at::Tensor spoilt = at::tensor({1.0, NAN, 1.0}, at::kDouble).unsqueeze(1);
    return -(z - at::tensor({0.5, 1.0}, at::kDouble)).square().sum(-1) * spoilt;
  });
  const Base base = build("laplace", broken);
  EXPECT_TRUE(at::equal(base.fell_back, at::tensor({0, 1, 0}).to(at::kBool)));
  EXPECT_TRUE(at::equal(base.map.loc()[1], at::zeros({2}, at::kDouble)));
  EXPECT_TRUE(at::equal(base.map.matrix()[1], at::eye(2, at::kDouble)));
  EXPECT_NEAR(base.map.loc()[2][1].item<double>(), 1.0, 1e-12);
}

TEST(Pilot, FindsANarrowCorrelatedGaussian) {
  const CorrelatedGaussian target(3, 0.05);
  const Base base = build("pilot:512,steps=48,rounds=3", target);
  const at::Tensor sd = target.covariance().diagonal().sqrt();
  EXPECT_LT(((base.map.loc() - target.mean()) / sd).abs().max().item<double>(), 0.3);
  for (int64_t p = 0; p < 3; ++p) {
    const at::Tensor root = base.map.matrix()[p];
    const at::Tensor error =
        (at::matmul(root, root.t()) - target.covariance()) / sd / sd.view({3, 1});
    EXPECT_LT(error.abs().max().item<double>(), 0.25);
  }
  const Problem problem(borrow(target), base.map);
  at::Generator rng = make_generator(2);
  EXPECT_GT(ess(importance_log_weights(problem, 2000, rng).log_w).min().item<double>(), 0.6);
}

TEST(Pilot, ShrinksWhatFewChainsCannotTell) {
  // Eight chains in three dimensions: their covariance alone would be nearly singular.
  const DiagonalGaussian target(50, {0.0, 0.0, 0.0}, {1.0, 1.0, 1.0}, 0.0);
  const Base base = build("pilot:8,steps=8,rounds=1", target);
  const at::Tensor root = base.map.matrix();
  const at::Tensor covariance = at::matmul(root, root.transpose(1, 2));
  const at::Tensor sd = covariance.diagonal(0, 1, 2).sqrt();
  const at::Tensor correlation = covariance / sd.unsqueeze(1) / sd.unsqueeze(2);
  const at::Tensor off = correlation - at::eye(3, at::kDouble);
  EXPECT_LT(off.square().mean().sqrt().item<double>(), 0.2);  // 0.31 without shrinking
}

TEST(Bases, SayWhatTheyNeed) {
  const LogGamma target(1, {2.0});
  const FunctionTarget wide({1, 4'000'000}, [](const at::Tensor& z) { return z.sum(-1); });
  expect_error(ErrorKind::kArgument, {"`base`", "in 4000000 dimensions take 582.1 TiB"},
               [&] { build("laplace", wide); });
  expect_error(ErrorKind::kArgument, {"no encoder", "laplace"}, [&] { build("encoder", target); });
}

TEST(FactorPrecision, InvertsAndMendsAndMarks) {
  at::Tensor h =
      at::tensor({4.0, 1.0, 1.0, 2.0, 1.0, 0.0, 0.0, -4.0, NAN, 0.0, 0.0, 1.0}, at::kDouble)
          .view({3, 2, 2});
  const Factored found = factor_precision(h);
  EXPECT_TRUE(at::equal(found.failed, at::tensor({0, 0, 1}).to(at::kBool)));
  const auto covariance = [&](int64_t p) {
    return at::matmul(found.covariance_root[p], found.covariance_root[p].t());
  };
  EXPECT_LT(max_abs_diff(covariance(0), at::inverse(h[0])), 1e-14);
  EXPECT_LT(max_abs_diff(covariance(1), at::diag(at::tensor({1.0, 0.25}, at::kDouble))), 1e-12);
  EXPECT_TRUE(at::equal(found.covariance_root, found.covariance_root.tril()));
  EXPECT_TRUE(factor_precision(at::zeros({1, 2, 2}, at::kDouble)).failed.all().item<bool>());
}

at::Tensor banded(int64_t problems, int64_t dim) {
  const at::Tensor beside = at::diag(at::linspace(0, 0.5, dim - 1, at::kDouble), 1);
  return (2 * at::eye(dim, at::kDouble) + beside + beside.t()).repeat({problems, 1, 1});
}

TEST(FactorPrecision, OfManyDimensionsIsMadeInPiecesThatHeedSignals) {
  at::Tensor h = banded(2, 1100);
  h[1][0][0] = NAN;
  const Factored found = factor_precision(h);
  EXPECT_TRUE(at::equal(found.failed, at::tensor({0, 1}).to(at::kBool)));
  const at::Tensor& root = found.covariance_root[0];
  EXPECT_TRUE(at::equal(root, root.tril()));
  EXPECT_LT(max_abs_diff(at::matmul(h[0], at::matmul(root, root.t())), at::eye(1100, at::kDouble)),
            1e-12);
  set_interrupted(true);
  for (const int64_t problems : {1, 2})
    expect_error(ErrorKind::kInterrupted, {"interrupted"},
                 [&] { factor_precision(banded(problems, 1100)); });
  factor_precision(banded(2, 30));  // as what takes no time
  set_interrupted(false);
}

class EveryBase : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Registered, EveryBase, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, entry] : BaseRegistry::instance().entries())
                             if (name != "encoder") names.push_back(entry.example);
                           return names;
                         }()),
                         [](const auto& instance) {
                           return instance.param.substr(0, instance.param.find(':'));
                         });

TEST_P(EveryBase, LeavesImportanceSamplingUnbiased) {
  const LogGamma target(100, {6.0, 4.0});
  const Base base = build(GetParam(), target);
  const Problem problem(borrow(target), base.map);
  at::Generator rng = make_generator(7);
  const at::Tensor ratio =
      (log_mean_exp(importance_log_weights(problem, 64, rng).log_w) - *target.true_log_normalizer())
          .exp();
  EXPECT_LT(std::abs(testing::z_score(ratio, 1)), 5);
  EXPECT_LT(testing::std_error(ratio), 0.15);
}

}  // namespace
}  // namespace crais
