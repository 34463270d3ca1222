// Constant rate in 128 dimensions against quadrature: targets whose coordinates are independent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "core/target.h"
#include "support/grid_density.h"
#include "support/statistics.h"

namespace crais {
namespace {

using testing::GridDensity;

constexpr int64_t kDim = 128;

at::Tensor base_log_density(const at::Tensor& z) {
  return -0.5 * z.square() - 0.5 * std::log(2 * M_PI);
}

/// A kind of coordinate, `count` of them from `first` on: the target's density along one, the
/// others held at `anchor`.
struct Coordinates {
  int64_t first, count;
};

/// KL(N(0, 1) || target) of the whole target and the delta of 64 transitions, computed elsewhere.
struct Case {
  std::string name;
  std::vector<Coordinates> kinds;
  double anchor, low, high;
  double kl, delta;
};

class Factorised : public ::testing::TestWithParam<Case> {
 protected:
  Factorised()
      : target_(TargetRegistry::instance().make("target", GetParam().name + ":128",
                                                {1, at::TensorOptions().dtype(at::kDouble), ""})),
        path_(PathRegistry::instance().make("path", "geometric")),
        grid_(at::linspace(GetParam().low, GetParam().high, kPoints, at::kDouble)) {
    for (const auto& kind : GetParam().kinds) ratios_.push_back(log_ratio(kind));
  }

  /// log gamma - log q0 on the grid, along a coordinate of this kind, less a constant.
  at::Tensor log_ratio(const Coordinates& kind) const {
    at::Tensor points = at::full({1, kPoints, kDim}, GetParam().anchor, at::kDouble);
    points.select(2, kind.first).copy_(grid_.unsqueeze(0));
    const at::Tensor log_f = target_->log_density(points)[0];
    return log_f - log_f.max() - base_log_density(grid_);
  }

  GridDensity annealed(size_t kind, double t) const {
    return {[&](const at::Tensor& z) { return base_log_density(z) + t * ratios_[kind]; },
            GetParam().low, GetParam().high, kPoints};
  }

  /// (1 - t)^2 Var[log gamma - log q0], which adds up over coordinates.
  double exact_rate(double t) const {
    double sum = 0;
    for (size_t k = 0; k < ratios_.size(); ++k) {
      const GridDensity density = annealed(k, t);
      const double mean = density.expect(ratios_[k]);
      sum += double(GetParam().kinds[k].count) * density.expect((ratios_[k] - mean).square());
    }
    return (1 - t) * (1 - t) * sum;
  }

  std::unique_ptr<ScheduleRule> rule(double delta) const {
    std::ostringstream spec;
    spec << "constant-rate:" << delta;
    return ScheduleRegistry::instance().make("schedule", spec.str(), {});
  }

  static constexpr int64_t kPoints = 8001;
  std::unique_ptr<Target> target_;
  std::unique_ptr<Path> path_;
  at::Tensor grid_;
  std::vector<at::Tensor> ratios_;  // of each kind
};

// Constants are those of the table of limits with perfect transitions, to their printed digits.
INSTANTIATE_TEST_SUITE_P(
    Targets, Factorised,
    ::testing::Values(Case{"normal", {{0, 128}}, 1, -10, 10, 97.197 * 128, 227},
                      Case{
                          "mixture", {{0, 3}, {3, 125}}, -5, -14, 14, 3 * 9.139 + 125 * 12.5, 26.5},
                      Case{"laplace", {{0, 128}}, 0.1, -40, 40, 0.0721 * 128, 0.153},
                      Case{"student-t", {{0, 128}}, 0.1, -40, 40, 0.0691 * 128, 0.147}),
    [](const auto& instance) {
      std::string name = instance.param.name;
      name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
      return name;
    });

/// The schedule that exact rates make takes the number of steps that was found elsewhere.
TEST_P(Factorised, ExactSchedulesHaveTheirLength) {
  double beta = 0, divergence = 0;
  int64_t steps = 0;
  for (; beta < 1 && steps < 200; ++steps) {
    const double rate = exact_rate(beta);
    if (rate <= 1e-3) break;
    const double next = 1 - (1 - beta) * std::exp(-GetParam().delta / rate);
    divergence += GetParam().delta;
    beta = std::min(next, beta + 0.125);
    if (1 - beta < 1e-9) break;
  }
  EXPECT_NEAR(double(steps), 64, 4);
  EXPECT_NEAR(divergence, GetParam().kl, 0.25 * GetParam().kl);
}

/// Exact draws of the annealed density, seen through the target itself, give the exact step.
TEST_P(Factorised, ParticlesFindTheExactStep) {
  constexpr int64_t kProblems = 30, kParticles = 200;
  at::Generator rng = make_generator(1);
  for (const double t : {0.0, 0.05, 0.3, 0.8}) {
    std::vector<at::Tensor> coordinates;
    for (size_t k = 0; k < ratios_.size(); ++k)
      coordinates.push_back(
          annealed(k, t).sample({kProblems, kParticles, GetParam().kinds[k].count}, rng));
    const at::Tensor z = at::cat(coordinates, 2);
    const Particles particles{
        at::Tensor(), base_log_density(z).sum(-1),
        target_->log_density(z.view({1, -1, kDim})).view({kProblems, kParticles}), at::Tensor(),
        at::Tensor()};
    const at::Tensor beta = at::full({kProblems}, t, at::kDouble);
    const double exact = exact_rate(t), delta = 0.01 * exact;
    const at::Tensor next = rule(delta)->next(
        {0, beta, particles, at::zeros({kProblems, kParticles}, at::kDouble), false}, *path_);
    const at::Tensor rate = delta / (at::log1p(-beta) - at::log1p(-next));
    EXPECT_LT(std::abs(testing::z_score(rate, exact)), 5) << t;
    EXPECT_LT(testing::std_error(rate), 0.05 * exact) << t;
  }
}

}  // namespace
}  // namespace crais
