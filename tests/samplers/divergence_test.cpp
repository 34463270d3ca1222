// The divergence along a run, and the theory of constant rate: it falls by delta a step.
#include "samplers/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/log_math.h"
#include "core/registry.h"
#include "core/rng.h"
#include "core/schedule.h"
#include "samplers/plan.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

std::unique_ptr<Path> power(double alpha) {
  return PathRegistry::instance().make("path", "power:" + std::to_string(alpha));
}

/// A line of grid points as particles. Their weights are the annealed density, so that every
/// expectation under weights is a quadrature: nothing here is random.
class Grid {
 public:
  Grid()
      : z_(at::linspace(-10, 11, 1001, at::kDouble).unsqueeze(0)),
        particles_{at::Tensor(), normal(0, 1), normal(kMean, kSd), at::Tensor(), at::Tensor()} {}

  const Particles& particles() const { return particles_; }
  at::Tensor log_w(const Path& path, const at::Tensor& beta) const {
    return path.at(beta.unsqueeze(1), particles_.log_q0, particles_.log_gamma).log_density;
  }

 private:
  // A variance above 1/3, which order -1/2 needs; and a mass of exp(0.3).
  static constexpr double kMean = 0.9, kSd = 0.7, kLogMass = 0.3;
  at::Tensor normal(double mean, double sd) const {
    return -0.5 * ((z_ - mean) / sd).square() - std::log(sd) - 0.5 * std::log(2 * M_PI) +
           (mean == 0 ? 0 : kLogMass);
  }

  at::Tensor z_;
  Particles particles_;
};

class EveryOrder : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Alpha, EveryOrder, ::testing::Values(-0.5, 0, 0.25, 0.5, 0.75, 1, 2),
                         [](const auto& instance) {
                           return "order" + std::to_string(instance.index);
                         });

/// D = int f(pi / q) q, written down afresh.
double divergence_by_definition(const Path& path, const Grid& grid, double t) {
  const double alpha = *path.divergence().order();
  const at::Tensor q = log_normalise(grid.log_w(path, at::full({1}, t, at::kDouble)));
  const at::Tensor log_u = log_normalise(grid.particles().log_gamma) - q;
  const at::Tensor u = log_u.exp();
  const at::Tensor f = alpha == 0 ? -log_u
                       : alpha == 1
                           ? u * log_u
                           : (u.pow(alpha) - alpha * u) / (alpha * (alpha - 1)) + 1 / alpha;
  return (q.exp() * f).sum().item<double>();
}

TEST_P(EveryOrder, IsTheDivergence) {
  const Grid grid;
  const auto path = power(GetParam());
  DivergenceRecord record(*path);
  const std::vector<double> stops = {0.0, 0.1, 0.4, 0.8, 1.0};
  for (const double t : stops) {
    const at::Tensor beta = at::full({1}, t, at::kDouble);
    record.add(beta, grid.particles(), grid.log_w(*path, beta));
  }
  const at::Tensor found = record.finish();
  for (size_t i = 0; i < stops.size(); ++i)
    EXPECT_NEAR(found[int64_t(i)].item<double>(), divergence_by_definition(*path, grid, stops[i]),
                1e-9)
        << stops[i];
  EXPECT_NEAR(found[-1].item<double>(), 0, 1e-12);
}

/// The exact schedule, step by step: delta a step, hence D / delta steps, for every order.
TEST_P(EveryOrder, FallsByDeltaAStepOfConstantRate) {
  const Grid grid;
  const auto path = power(GetParam());
  const double whole = divergence_by_definition(*path, grid, 0);
  // At order -1/2 the first dozen, of quickly falling V, fall short.
  constexpr int64_t kSteps = 500;
  const double delta = whole / kSteps;
  ScheduleOptions options{.tolerance = 1e-9, .weighted = true};
  std::ostringstream spec;
  spec.precision(17);
  spec << "constant-rate:" << delta;
  const auto rule = ScheduleRegistry::instance().make("schedule", spec.str(), options);
  at::Tensor beta = at::zeros({1}, at::kDouble);
  int64_t steps = 0;
  for (; beta.item<double>() < 1 && steps < 2 * kSteps; ++steps) {
    if (steps % 50 == 0 && steps < kSteps) {
      EXPECT_NEAR(divergence_by_definition(*path, grid, beta.item<double>()),
                  whole - delta * double(steps), 0.02 * whole)
          << "step " << steps;
    }
    beta = rule->next({steps, beta, grid.particles(), grid.log_w(*path, beta), false}, *path);
  }
  EXPECT_NEAR(double(steps), kSteps, 0.05 * kSteps);
}

TEST(Divergence, OfARunIsThatOfItsParticles) {
  constexpr int64_t kProblems = 40;
  const testing::DiagonalGaussian target(kProblems, {0.8, -0.4}, {0.6, 0.9}, 0.7);
  const Problem problem(borrow(target), AffineMap::identity(kProblems, 2, at::kDouble));
  const auto path = power(0);
  const auto rule = ScheduleRegistry::instance().make("schedule", "linear", {20});
  const auto kernel = TransitionRegistry::instance().make("kernel", "hmc", {3});
  PilotOptions options{.num_particles = 256, .shared = false};
  at::Generator rng = make_generator(3);
  const Plan plan = run_pilot(problem, *path, *rule, *kernel, options, rng).plan;
  ASSERT_EQ(plan.divergence.sizes(), plan.betas.sizes());
  // KL(N(0, 1) || N(m, s^2)) of each dimension.
  double kl = 0;
  for (const auto& [mean, sd] : {std::pair{0.8, 0.6}, std::pair{-0.4, 0.9}})
    kl += std::log(sd) + 0.5 * (1 + mean * mean) / (sd * sd) - 0.5;
  EXPECT_LT(std::abs(testing::z_score(plan.divergence[0], kl)), 5);
  EXPECT_LT(testing::std_error(plan.divergence[0]), 0.05 * kl);
  EXPECT_LT(plan.divergence[-1].abs().max().item<double>(), 1e-12);
  EXPECT_LT(plan.divergence[10].mean().item<double>(), 0.5 * kl);

  // And what else the pilot saw: acceptances of its moves, effective sizes of its weights.
  ASSERT_EQ(plan.accept_prob.sizes(), plan.step_sizes.sizes());
  ASSERT_EQ(plan.ess.sizes(), plan.betas.sizes());
  EXPECT_TRUE(((plan.accept_prob > 0) & (plan.accept_prob < 1.0001)).all().item<bool>());
  EXPECT_NEAR(plan.accept_prob.mean().item<double>(), kernel->target_acceptance(), 0.1);
  EXPECT_TRUE((plan.ess[0] == 1).all().item<bool>());
  EXPECT_TRUE(((plan.ess > 0) & (plan.ess <= 1)).all().item<bool>());
  EXPECT_LT(plan.ess[-1].mean().item<double>(), plan.ess[3].mean().item<double>());
}

}  // namespace
}  // namespace crais
