// Every registered divergence, against finite differences and what defines it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/divergence.h"
#include "core/log_math.h"
#include "core/rng.h"
#include "support/expect_error.h"
#include "support/registered.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::max_abs_diff;

std::unique_ptr<Divergence> make(const std::string& spec) {
  return DivergenceRegistry::instance().make("divergence", spec);
}

std::vector<std::string> specs() {
  std::vector<std::string> all = {"alpha:-0.5", "alpha:0", "alpha:1", "alpha:2"};
  for (const std::string& example : testing::examples<DivergenceRegistry>()) all.push_back(example);
  return all;
}

class Divergences : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Divergence> divergence_ = make(GetParam());
  at::Tensor y_ = at::linspace(-6, 6, 481, at::kDouble);  // log u
};
INSTANTIATE_TEST_SUITE_P(Every, Divergences, ::testing::ValuesIn(specs()),
                         testing::named_by_index_and_spec);

/// The derivative in log u, to O(h^4).
template <typename F>
at::Tensor derivative(const F& f, const at::Tensor& y) {
  constexpr double kStep = 1e-3;
  const auto central = [&](double h) { return (f(y + h) - f(y - h)) / (2 * h); };
  return (4 * central(kStep) - central(2 * kStep)) / 3;
}

TEST_P(Divergences, GIsThatOfF) {  // u f'(u) = df/dlog u
  const auto f = [&](const at::Tensor& y) { return divergence_->f(y); };
  const at::Tensor found = divergence_->g(y_), expected = derivative(f, y_) - f(y_);
  EXPECT_LT(max_abs_diff(found / (1 + expected.abs()), expected / (1 + expected.abs())), 1e-8);
}

TEST_P(Divergences, SlopeIsThatOfG) {
  const auto g = [&](const at::Tensor& y) { return divergence_->g(y); };
  const at::Tensor found = divergence_->slope(y_), expected = derivative(g, y_);
  EXPECT_LT(max_abs_diff(found / (1 + expected.abs()), expected / (1 + expected.abs())), 1e-7);
}

TEST_P(Divergences, IsZeroWhereDensitiesAreEqualAndConvex) {
  const at::Tensor one = at::zeros({1}, at::kDouble);
  EXPECT_LT(max_abs_diff(divergence_->f(one), one), 1e-15);
  EXPECT_LT(max_abs_diff(divergence_->g(one), one), 1e-15);
  EXPECT_GT(divergence_->slope(one).item<double>(), 0.05);
  EXPECT_TRUE((divergence_->slope(y_) > 0).all().item<bool>());
}

TEST_P(Divergences, IsSafeFarOut) {
  const at::Tensor far = at::tensor({-1e6, -1e4, -800.0, 700.0}, at::kDouble);
  for (const at::Tensor& x : {divergence_->f(far), divergence_->g(far), divergence_->slope(far)})
    EXPECT_FALSE(x.isnan().any().item<bool>()) << x;
  EXPECT_TRUE((divergence_->slope(far) >= 0).all().item<bool>());
  const at::Tensor gone = at::full({1}, -INFINITY, at::kDouble);
  EXPECT_FALSE(divergence_->g(gone).isnan().item<bool>());
  EXPECT_FALSE(divergence_->slope(gone).isnan().item<bool>());
}

TEST_P(Divergences, VarianceIsThatOfG) {
  at::Generator rng = make_generator(1);
  const at::Tensor kappa = at::randn({3, 200}, rng, at::kDouble);
  const at::Tensor some = log_normalise(at::randn({3, 200}, rng, at::kDouble));
  const at::Tensor others = log_normalise(at::randn({3, 200}, rng, at::kDouble));
  const at::Tensor r = (others.exp() * kappa.exp()).sum(1, true), w = some.exp();
  const at::Tensor g = divergence_->g(kappa - r.log());
  const at::Tensor variance = (w * g.square()).sum(1) - (w * g).sum(1).square();
  const at::Tensor found = divergence_->log_variance(kappa, some, others);
  EXPECT_LT(max_abs_diff(found, variance.log()), 1e-9);
  // What scales the target changes nothing.
  EXPECT_LT(max_abs_diff(divergence_->log_variance(kappa + 2000, some, others), found), 1e-9);
}

TEST(Divergence, AreKnownOnes) {
  const double u = 2.5, y = std::log(u);
  const auto f = [&](const std::string& spec) {
    return make(spec)->f(at::full({1}, y, at::kDouble)).item<double>();
  };
  const double middle = std::log((1 + u) / 2);
  EXPECT_NEAR(f("jensen-shannon"), 0.5 * (u * (y - middle) - middle), 1e-14);
  EXPECT_NEAR(f("alpha:0"), u - 1 - y, 1e-14);
  EXPECT_NEAR(f("alpha:1"), u * y - u + 1, 1e-14);
  EXPECT_NEAR(f("alpha:2"), (u * u - 2 * u) / 2 + 0.5, 1e-14);
}

TEST(Divergence, KnowsItsOrder) {
  EXPECT_EQ(make("alpha:0.5")->order(), 0.5);
  EXPECT_EQ(make("alpha:1e-9")->order(), 0.0);
  EXPECT_FALSE(make("jensen-shannon")->order().has_value());
  expect_error(ErrorKind::kArgument, {"unknown divergence 'hellinger'", "jensen-shannon"},
               [] { make("hellinger"); });
}

}  // namespace
}  // namespace crais
