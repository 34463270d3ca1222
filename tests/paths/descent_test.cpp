// Paths of steepest descent, by quadrature: what they promise holds without a sampler.
#include "paths/descent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "core/schedule.h"
#include "support/descent.h"
#include "support/expect_error.h"
#include "support/registered.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::any_descent;
using testing::descent_path;
using testing::equal_steps;
using testing::Line;
using testing::max_abs_diff;
using testing::tilt;

std::vector<std::string> divergences() {
  std::vector<std::string> all = {"alpha:0", "alpha:1"};
  for (const std::string& example : testing::examples<DivergenceRegistry>()) all.push_back(example);
  return all;
}

class Descents : public ::testing::TestWithParam<std::string> {
 protected:
  std::string name_ = "f:" + GetParam();
  std::shared_ptr<const DescentPath> path_ = descent_path(name_);
};
INSTANTIATE_TEST_SUITE_P(Every, Descents, ::testing::ValuesIn(divergences()),
                         testing::named_by_index_and_spec);

/// The mapping of v through the same steps, number by number, with nothing between nodes.
double by_bisection(const DescentPath& path, double kappa) {
  double v = kappa;
  for (int64_t i = 2; i < path.constants.size(0); i += 3) {
    const auto constant = [&](int64_t k) { return path.constants[i + k].item<double>(); };
    v -= constant(0);
    double low = -500, high = 500;
    for (int k = 0; k < 100; ++k) {
      const double y = (low + high) / 2;
      const double g = path.divergence().g(at::full({1}, y, at::kDouble)).item<double>();
      (y - v + constant(2) * (g - constant(1)) > 0 ? high : low) = y;
    }
    v = (low + high) / 2;
  }
  return v;
}

TEST_P(Descents, TablesAreTheSolution) {
  const auto descent = equal_steps(name_, at::ones({1}, at::kDouble), 9);
  for (const double kappa : {-28.3, -11.7, -4.1, -1.3, -0.2, 0.35, 1.9, 3.3, 7.7, 21.0})
    EXPECT_NEAR(kappa - tilt(*descent, at::full({1, 1}, kappa, at::kDouble)).item<double>(),
                by_bisection(*descent, kappa), 5e-4)
        << kappa;
}

/// dJ/dtheta = -Var[g]: with dtheta = delta / V, J falls by delta a step.
TEST_P(Descents, DivergenceFallsByDeltaAStep) {
  const Line line(0.9, 0.7, 0.3);
  const double whole = line.divergence(path_->divergence(), at::zeros_like(line.log_q0()));
  const double delta = whole / 100;
  std::vector<double> found;
  line.descend(
      name_, [&](double v) { return delta / v; }, 81, &found);
  EXPECT_NEAR((found[80] - found[0]) / (80 * delta), -1, 0.03);
  for (size_t i = 0; i < found.size(); i += 10)
    EXPECT_NEAR(found[i], whole - delta * double(i), 0.03 * whole) << i;
}

/// Constant rate on the finished path, which knows nothing of how it was found.
TEST_P(Descents, ConstantRateTakesDivergenceOverDeltaSteps) {
  const Line line(0.9, 0.7, 0.3);
  const double whole = line.divergence(path_->divergence(), at::zeros_like(line.log_q0()));
  const auto path = line.descend(
      name_, [&](double v) { return whole / 100 / v; }, 95);
  constexpr int64_t kSteps = 400;
  std::ostringstream spec;
  spec.precision(17);
  spec << "constant-rate:" << whole / kSteps;
  ScheduleOptions options{.tolerance = 1e-12, .weighted = true};
  const auto rule = ScheduleRegistry::instance().make("schedule", spec.str(), options);
  const Particles particles{{}, line.log_q0(), line.log_gamma(), {}, {}};
  at::Tensor beta = at::zeros({1}, at::kDouble);
  for (int64_t i = 0; i < 380; ++i) {
    const at::Tensor log_w = annealed_log_density(*path, beta, particles);
    if (i % 40 == 0) {
      EXPECT_NEAR(line.divergence(path->divergence(), log_w - line.log_q0()),
                  whole * (1 - double(i) / kSteps), 0.03 * whole)
          << i;
    }
    beta = rule->next({i, beta, particles, log_w, false}, *path);
  }
  EXPECT_LT(beta.item<double>(), 1);
}

/// The largest differences to the power mean: of log densities and of their slopes.
struct Apart {
  double log_density, slope;
};
Apart apart_from_power_mean(const Line& line, double alpha, int64_t steps) {
  std::ostringstream order;
  order << alpha;
  const auto path = line.descend(
      "f:alpha:" + order.str(), [&](double) { return 1.2 / double(steps); }, steps);
  const auto power = PathRegistry::instance().make("path", "power:" + order.str());
  const at::Tensor beta = at::full({1, 1}, double(steps) / double(steps + 1), at::kDouble);
  const PathPoint found = path->at(beta, line.log_q0(), line.log_gamma());
  // Both are the same curve at another pace: where densities are equal, their slopes agree.
  const at::Tensor zero = at::zeros({1, 1}, at::kDouble);
  const at::Tensor same = path->at(beta, zero, zero).d_log_gamma;
  const PathPoint expected = power->at(same, line.log_q0(), line.log_gamma());
  const at::Tensor near = line.kappa().abs() < 8;
  const auto apart = [&](const at::Tensor& a, const at::Tensor& b) {
    return max_abs_diff(a.index({near}), b.index({near}));
  };
  return {apart(found.log_density, expected.log_density),
          apart(found.d_log_gamma, expected.d_log_gamma)};
}

TEST(DescentPath, OfAnAlphaDivergenceIsThePowerMean) {
  const Line line(0.9, 0.7, 0.3);
  for (const double alpha : {-0.5, 0.0, 0.5, 1.0, 2.0}) {
    const Apart coarse = apart_from_power_mean(line, alpha, 60);
    const Apart fine = apart_from_power_mean(line, alpha, 120);
    EXPECT_LT(fine.log_density, 0.02) << alpha;
    EXPECT_LT(fine.slope, 0.01) << alpha;
    // Steps are of first order: two lengths tell the limit.
    EXPECT_LT(fine.log_density, 0.6 * coarse.log_density + 2e-4) << alpha;
    EXPECT_LT(fine.slope, 0.6 * coarse.slope + 2e-4) << alpha;
  }
}

TEST(DescentPath, KeepsItsColumnsApart) {
  const std::string name = "f:jensen-shannon";
  const at::Tensor scale = at::tensor({0.3, 1.0, 2.0}, at::kDouble);
  const auto path = equal_steps(name, scale, 3);
  const at::Tensor some = at::tensor({1.0, 0.0, 1.0}, at::kDouble);  // the second arrives early
  at::Tensor step = path->constants.slice(0, 2, 5).clone();
  step[2] *= some;
  for (int i = 0; i < 2; ++i) path->descend(step);
  path->finish();
  at::Generator rng = make_generator(1);
  const at::Tensor a = at::randn({3, 50}, rng, at::kDouble),
                   b = 3 * at::randn({3, 50}, rng, at::kDouble);
  const at::Tensor beta = at::tensor({0.3, 0.71, 0.95}, at::kDouble).unsqueeze(1);
  const PathPoint together = path->at(beta, a, b);
  const at::Tensor time = at::log(at::tensor({0.1, 0.2, 3.0}, at::kDouble));
  const at::Tensor later = path->advance(beta.squeeze(1), time);
  EXPECT_TRUE(((later > beta.squeeze(1)) & (later < 1)).all().item<bool>());
  for (int64_t p = 0; p < 3; ++p) {
    const at::Tensor only = at::full({1}, p, at::kLong);
    const auto row = [&](const at::Tensor& x) { return x.index_select(0, only); };
    const auto selected = path->select(only);
    EXPECT_TRUE(
        at::equal(selected->at(row(beta), row(a), row(b)).log_density, row(together.log_density)));
    EXPECT_TRUE(at::equal(selected->advance(row(beta).squeeze(1), row(time)), row(later)));
    // A column alone has as many knots as its own steps.
    const auto own = equal_steps(name, row(scale), p == 1 ? 3 : 5);
    own->finish();
    EXPECT_LT(
        max_abs_diff(own->at(row(beta), row(a), row(b)).log_density, row(together.log_density)),
        1e-8);
  }
}

TEST(DescentPath, ClockRunsWithTheta) {
  const auto path = any_descent("f:alpha:0.5", 4);  // knots 0.4 apart in theta, 0.2 in beta
  const auto later = [&](double beta, double time) {
    return path
        ->advance(at::full({1}, beta, at::kDouble), at::full({1}, std::log(time), at::kDouble))
        .item<double>();
  };
  EXPECT_NEAR(later(0, 0.2), 0.1, 1e-14);
  EXPECT_NEAR(later(0.1, 0.8), 0.5, 1e-14);
  // From the last knot on v falls by exp(-f''(1) theta); f''(1) = 1 here.
  EXPECT_NEAR(later(0.8, 0.7), 0.8 + 0.2 * -std::expm1(-0.7), 1e-14);
  EXPECT_NEAR(later(0.5, 0.6 + 0.7), 0.8 + 0.2 * -std::expm1(-0.7), 1e-13);
  EXPECT_NEAR(later(later(0.3, 0.9), 0.4), later(0.3, 1.3), 1e-13);
  EXPECT_LE(later(0.9, 1e9), 1);
}

TEST(DescentPath, HasToBeLearned) {
  const auto path = descent_path("f:jensen-shannon,knots=7");
  EXPECT_TRUE(path->needs_learning());
  EXPECT_EQ(path->max_knots, 7);
  const at::Tensor x = at::zeros({1, 1}, at::kDouble);
  EXPECT_THROW(path->at(x, x, x), c10::Error);
  EXPECT_FALSE(any_descent("f:jensen-shannon", 3)->needs_learning());
  expect_error(ErrorKind::kArgument, {"unknown divergence 'kl'"}, [] { descent_path("f:kl"); });
  expect_error(ErrorKind::kArgument, {"needs divergence"}, [] { descent_path("f"); });
}

}  // namespace
}  // namespace crais
