// What every registered path must do, and some orders besides.
#include <gtest/gtest.h>

#include <cmath>

#include "core/path.h"
#include "core/rng.h"
#include "support/descent.h"
#include "support/registered.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

std::vector<std::string> specs() {
  std::vector<std::string> all = {"power:-0.5", "power:0.25",   "power:0.5", "power:1",
                                  "power:2",    "f:alpha:-0.5", "f:alpha:2"};
  for (const std::string& divergence : testing::examples<DivergenceRegistry>())
    all.push_back("f:" + divergence);
  for (const auto& [name, entry] : PathRegistry::instance().entries()) all.push_back(entry.example);
  return all;
}

/// The path of a specification; one that needs a pilot has constants all the same.
std::shared_ptr<const Path> ready(const std::string& spec) {
  std::shared_ptr<const Path> path = PathRegistry::instance().make("path", spec);
  if (!path->needs_learning()) return path;
  return testing::any_descent(spec, 6);
}

class Paths : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Path> path_ = ready(GetParam());
  bool is_power_mean_ = GetParam().substr(0, 2) != "f:";
  double order() const { return *path_->divergence().order(); }
};

INSTANTIATE_TEST_SUITE_P(Every, Paths, ::testing::ValuesIn(specs()),
                         testing::named_by_index_and_spec);

at::Tensor column(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kDouble).unsqueeze(1);
}

at::Tensor randn(uint64_t seed, double scale) {
  at::Generator rng = make_generator(seed);
  return scale * at::randn({5, 40}, rng, at::kDouble);
}

const at::Tensor& inner_betas() {
  static const at::Tensor betas = column({1e-6, 0.1, 0.5, 0.77, 1 - 1e-6});
  return betas;
}

TEST_P(Paths, IsThePowerMeanOfItsOrder) {
  if (!is_power_mean_) return;  // up to its pace: see paths/descent_test.cpp
  const at::Tensor a = randn(1, 3), b = randn(2, 3), beta = inner_betas();
  const double alpha = order();
  const at::Tensor mean =
      alpha == 0 ? (1 - beta) * a + beta * b
                 : ((1 - beta) * (alpha * a).exp() + beta * (alpha * b).exp()).log() / alpha;
  EXPECT_LT(max_abs_diff(path_->at(beta, a, b).log_density, mean), 1e-12);
}

TEST_P(Paths, IsExactAtItsEnds) {
  const at::Tensor a = randn(3, 100), b = randn(4, 100);
  for (const at::Tensor& other : {b, at::full_like(b, -INFINITY), at::full_like(b, 1e4)}) {
    const PathPoint start = path_->at(column({0, 0, 0, 0, 0}), a, other);
    EXPECT_TRUE(at::equal(start.log_density, a));
    EXPECT_TRUE((start.d_log_q0 == 1).all().item<bool>());
    EXPECT_TRUE((start.d_log_gamma == 0).all().item<bool>());
    const PathPoint end = path_->at(column({1, 1, 1, 1, 1}), other, b);
    EXPECT_TRUE(at::equal(end.log_density, b));
    EXPECT_TRUE((end.d_log_q0 == 0).all().item<bool>());
    EXPECT_TRUE((end.d_log_gamma == 1).all().item<bool>());
  }
}

TEST_P(Paths, LetsProblemsStandAtDifferentPlaces) {
  const at::Tensor a = randn(5, 2), b = randn(6, 2), beta = column({0, 0.3, 1, 0.9, 0});
  const PathPoint together = path_->at(beta, a, b);
  for (int64_t p = 0; p < 5; ++p) {
    const auto only = [p](const at::Tensor& x) { return x.slice(0, p, p + 1); };
    const PathPoint alone = path_->at(only(beta), only(a), only(b));
    EXPECT_LT(max_abs_diff(alone.log_density, only(together.log_density)), 1e-14);
    EXPECT_LT(max_abs_diff(alone.d_log_gamma, only(together.d_log_gamma)), 1e-14);
  }
}

TEST_P(Paths, GivesTheDensityAlone) {
  const at::Tensor a = randn(11, 3), b = randn(12, 3), beta = column({0, 0.3, 1, 0.9, 1e-6});
  const at::Tensor expected = path_->at(beta, a, b).log_density;
  EXPECT_TRUE(at::equal(path_->log_density(beta, a, b), expected));
  const at::Tensor turned = a.t().contiguous().t();  // in whatever order it lies in memory
  EXPECT_LT(max_abs_diff(path_->log_density(beta, turned, b), expected), 1e-12);
}

TEST_P(Paths, DerivativesAreThoseOfFiniteDifferences) {
  const at::Tensor a = randn(9, 3), b = randn(10, 3), beta = inner_betas();
  const auto log_density = [&](double da, double db) {
    return path_->at(beta, a + da, b + db).log_density;
  };
  constexpr double kStep = 1e-5;
  const PathPoint point = path_->at(beta, a, b);
  EXPECT_LT(
      max_abs_diff(point.d_log_q0, (log_density(kStep, 0) - log_density(-kStep, 0)) / (2 * kStep)),
      1e-8);
  EXPECT_LT(max_abs_diff(point.d_log_gamma,
                         (log_density(0, kStep) - log_density(0, -kStep)) / (2 * kStep)),
            1e-8);
}

TEST_P(Paths, IsSafeFarOut) {
  const at::Tensor beta = column({0, 1e-300, 0.5, 1 - 1e-15, 1});
  for (double a : {-1e4, 0.0, 1e4}) {
    for (double b : {-1e4, 0.0, 1e4}) {
      const at::Tensor like = at::zeros({5, 2}, at::kDouble);
      const PathPoint point = path_->at(beta, like + a, like + b);
      EXPECT_TRUE(point.log_density.isfinite().all().item<bool>()) << a << " " << b;
      EXPECT_LT(max_abs_diff(point.d_log_q0 + point.d_log_gamma, like + 1), 1e-12) << a << " " << b;
      EXPECT_TRUE((point.d_log_gamma >= 0).all().item<bool>()) << a << " " << b;
      // A mean lies between what it is the mean of.
      EXPECT_TRUE((point.log_density >= std::min(a, b) - 1e-8).all().item<bool>()) << a << " " << b;
      EXPECT_TRUE((point.log_density <= std::max(a, b) + 1e-8).all().item<bool>()) << a << " " << b;
    }
  }
}

TEST_P(Paths, IsNeverNanWhereTheTargetVanishes) {
  const at::Tensor a = randn(11, 1), b = at::full_like(a, -INFINITY);
  const PathPoint point = path_->at(inner_betas(), a, b);
  EXPECT_FALSE(point.log_density.isnan().any().item<bool>());
  EXPECT_FALSE(point.d_log_gamma.isnan().any().item<bool>());
  if (!is_power_mean_) return;
  if (order() <= 0) {
    EXPECT_TRUE((point.log_density == -INFINITY).all().item<bool>());
  } else {
    const at::Tensor expected = a + at::log1p(-inner_betas()) / order();
    EXPECT_LT(max_abs_diff(point.log_density, expected), 1e-11);
    EXPECT_TRUE((point.d_log_gamma == 0).all().item<bool>());
  }
}

TEST(PathOrders, MeetAtZero) {
  const at::Tensor a = randn(12, 3), b = randn(13, 3);
  const auto density = [&](const std::string& spec) {
    return PathRegistry::instance().make("path", spec)->at(inner_betas(), a, b).log_density;
  };
  EXPECT_LT(max_abs_diff(density("power:1e-4"), density("geometric")), 5e-3);
  EXPECT_GT(max_abs_diff(density("power:1e-4"), density("geometric")), 1e-6);
  EXPECT_LT(max_abs_diff(density("power:-1e-4"), density("geometric")), 5e-3);
  EXPECT_TRUE(at::equal(density("power:0"), density("geometric")));
  EXPECT_EQ(PathRegistry::instance().make("path", "power:0")->divergence().order(), 0.0);
}

}  // namespace
}  // namespace crais
