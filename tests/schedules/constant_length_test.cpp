// Equal steps of thermodynamic length against closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "core/schedule.h"
#include "support/statistics.h"

namespace crais {
namespace {

std::unique_ptr<ScheduleRule> make(double delta, double max_step = 1, bool weighted = false) {
  ScheduleOptions options{.max_step = max_step, .weighted = weighted};
  return ScheduleRegistry::instance().make("schedule", "constant-length:" + std::to_string(delta),
                                           options);
}

Particles cloud(const at::Tensor& log_q0, const at::Tensor& log_gamma) {
  return {at::Tensor(), log_q0, log_gamma, at::Tensor(), at::Tensor()};
}

class ConstantLength : public ::testing::Test {
 protected:
  ConstantLength() {
    at::Generator rng = make_generator(1);
    log_q0_ = -30 + at::randn({3, 500}, rng, at::kDouble);
    const at::Tensor spread = at::tensor({2.0, 5.0, 11.0}, at::kDouble).unsqueeze(1);
    log_gamma_ = -80 + spread * at::randn({3, 500}, rng, at::kDouble);
    sd_ = (log_gamma_ - log_q0_).std(1, /*unbiased=*/false);
  }

  at::Tensor step(const ScheduleRule& rule, const std::string& path, bool shared) const {
    const at::Tensor beta = at::full({3}, 0.2, at::kDouble);
    const Particles particles = cloud(log_q0_, log_gamma_);
    const at::Tensor log_w = at::zeros({3, 500}, at::kDouble);
    return rule.next({0, beta, particles, log_w, shared},
                     *PathRegistry::instance().make("path", path)) -
           0.2;
  }

  at::Tensor log_q0_, log_gamma_, sd_;
};

TEST_F(ConstantLength, StepsAreInverseToTheStandardDeviation) {
  const auto expect_step = [&](const at::Tensor& expected, double max_step, bool shared) {
    EXPECT_LT(testing::max_abs_diff(step(*make(0.3, max_step), "geometric", shared), expected),
              1e-11);
  };
  expect_step(0.3 / sd_, 1, false);
  expect_step((0.3 / sd_).clamp_max(0.04), 0.04, false);
  expect_step((0.3 / sd_.square().mean().sqrt()).expand({3}), 1, true);
}

TEST_F(ConstantLength, HoldsOnAnyPath) {
  const auto path = PathRegistry::instance().make("path", "power:0.5");
  const auto log_density = [&](const at::Tensor& beta) {
    return path->at(beta.unsqueeze(1), log_q0_, log_gamma_ + 50).log_density;
  };
  log_gamma_ = log_gamma_ + 50;
  const at::Tensor beta = 0.2 + step(*make(0.3), "power:0.5", false);
  log_gamma_ = log_gamma_ - 50;
  const at::Tensor increment = log_density(beta) - log_density(at::full({3}, 0.2, at::kDouble));
  EXPECT_LT(testing::max_abs_diff(increment.std(1, false), at::full({3}, 0.3, at::kDouble)), 1e-9);
}

/// From N(0, 1) to N(m, 1) log gamma - log q0 has standard deviation m all the way: the length is
/// m.
TEST_F(ConstantLength, TakesLengthOverDeltaSteps) {
  constexpr double kMean = 3.0, kDelta = 0.125;
  at::Generator rng = make_generator(2);
  const auto rule = make(kDelta);
  const auto path = PathRegistry::instance().make("path", "geometric");
  at::Tensor beta = at::zeros({1}, at::kDouble);
  int64_t steps = 0;
  for (; beta.item<double>() < 1; ++steps) {
    const at::Tensor x = beta.item<double>() * kMean + at::randn({1, 20000}, rng, at::kDouble);
    const Particles particles = cloud(-0.5 * x.square(), -0.5 * (x - kMean).square());
    beta = rule->next({steps, beta, particles, at::zeros_like(x), false}, *path);
  }
  EXPECT_NEAR(static_cast<double>(steps), kMean / kDelta, 1.0);
}

}  // namespace
}  // namespace crais
