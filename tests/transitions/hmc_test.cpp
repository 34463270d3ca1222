// The leapfrog integrator against closed forms, seen through the kernels themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "core/transition.h"
#include "support/statistics.h"
#include "support/targets.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;
using testing::max_abs_diff;

std::unique_ptr<Transition> make(const std::string& spec, int64_t num_leapfrog) {
  return TransitionRegistry::instance().make("kernel", spec, {num_leapfrog});
}

std::unique_ptr<Path> make_path(const std::string& spec) {
  return PathRegistry::instance().make("path", spec);
}

constexpr double kRho = 0.6;
const double kFresh = std::sqrt(1 - kRho * kRho);

/// The momentum noise that the next step will draw.
at::Tensor noise_of(const at::Tensor& like, uint64_t seed) {
  at::Generator rng = make_generator(seed);
  return at::empty_like(like).normal_(0, 1, rng);
}

at::Tensor constant(int64_t size, double value) { return at::full({size}, value, at::kDouble); }

class Leapfrog : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Steps, Leapfrog, ::testing::Values(1, 2, 5),
                         [](const auto& instance) { return "L" + std::to_string(instance.param); });

/// Between N(0, 1) and c N(m, s^2) the annealed density is a spring of stiffness lambda about mu.
TEST_P(Leapfrog, TurnsTheHarmonicOscillator) {
  constexpr double kMean = 1.5, kSd = 0.6, kBeta = 0.4, kEps = 0.5;
  const int64_t steps = GetParam();
  const DiagonalGaussian target(2, {kMean}, {kSd}, 0.8);
  const Problem problem(borrow(target), AffineMap::identity(2, 1, at::kDouble));
  at::Generator rng = make_generator(1);
  Particles start = problem.start(50, rng);
  start.momentum = problem.draw(50, rng);
  const at::Tensor p0 = kRho * start.momentum + kFresh * noise_of(start.e, 77);
  at::Generator step_rng = make_generator(77);
  const Moved moved = make("ghmc:0.6", steps)
                          ->step(problem, *make_path("geometric"), start, constant(2, kBeta),
                                 constant(2, kEps), step_rng);

  const double lambda = 1 - kBeta + kBeta / (kSd * kSd), mu = kBeta * kMean / (kSd * kSd) / lambda;
  const double h2 = kEps * kEps * lambda, theta = std::acos(1 - h2 / 2);
  const double turn = double(steps) * theta, stretch = kEps / std::sin(theta);
  const at::Tensor x0 = start.e - mu;
  const at::Tensor x1 = x0 * std::cos(turn) + p0 * stretch * std::sin(turn);
  const at::Tensor p1 = p0 * std::cos(turn) - x0 * std::sin(turn) / stretch;
  const auto energy = [&](const at::Tensor& x, const at::Tensor& p) {
    return (0.5 * p.square() + 0.5 * lambda * x.square()).squeeze(-1);
  };
  const at::Tensor accept = (energy(x0, p0) - energy(x1, p1)).clamp_max(0).exp();
  EXPECT_LT(max_abs_diff(moved.accept_prob, accept), 1e-10);

  const at::Tensor accepted = (moved.particles.e != start.e);
  EXPECT_GT(accepted.sum().item<int64_t>(), 50);
  EXPECT_LT(max_abs_diff(moved.particles.e, at::where(accepted, x1 + mu, start.e)), 1e-10);
  // A rejection turns the momentum round.
  EXPECT_LT(max_abs_diff(moved.particles.momentum, at::where(accepted, p1, -p0)), 1e-10);
  const Particles again = problem.evaluate(moved.particles.e);
  EXPECT_LT(max_abs_diff(again.log_gamma, moved.particles.log_gamma), 1e-12);
  EXPECT_LT(max_abs_diff(again.log_q0, moved.particles.log_q0), 1e-12);
  EXPECT_LT(max_abs_diff(again.grad_log_gamma, moved.particles.grad_log_gamma), 1e-12);
}

TEST_P(Leapfrog, RunsBackwards) {
  const LogGamma target(3, {0.6, 3.0});
  const at::Tensor scale = at::tensor({0.8, 0.0, -0.5, 1.2}, at::kDouble).view({2, 2});
  const Problem problem(borrow(target),
                        AffineMap(at::full({3, 2}, 0.3, at::kDouble), scale.repeat({3, 1, 1})));
  const auto kernel = make("ghmc:0.6", GetParam());
  for (const char* spec : {"geometric", "power:0.5", "power:1"}) {
    const auto path = make_path(spec);
    const auto step = [&](const Particles& from, uint64_t seed) {
      at::Generator rng = make_generator(seed);
      return kernel->step(problem, *path, from, constant(3, 0.6), constant(3, 0.3), rng);
    };
    at::Generator rng = make_generator(2);
    Particles start = problem.start(40, rng);
    start.momentum = problem.draw(40, rng);
    const at::Tensor p0 = kRho * start.momentum + kFresh * noise_of(start.e, 5);
    Particles there = step(start, 5).particles;
    const at::Tensor went = (there.e != start.e).all(-1, true);
    EXPECT_GT(went.sum().item<int64_t>(), 90);
    // The stored momentum for which the refreshed one is the reversed.
    there.momentum = (-there.momentum - kFresh * noise_of(start.e, 6)) / kRho;
    const Particles back = step(there, 6).particles;
    const at::Tensor returned = went & (back.e != there.e).all(-1, true);
    EXPECT_GT(returned.sum().item<int64_t>(), 60);
    EXPECT_LT(max_abs_diff(at::where(returned, back.e - start.e, 0 * start.e), 0 * start.e), 1e-10);
    EXPECT_LT(max_abs_diff(at::where(returned, back.momentum + p0, 0 * p0), 0 * p0), 1e-10);
  }
}

TEST(HmcKernel, UsesTheStepSizeOfEachProblem) {
  const DiagonalGaussian target(2, {1.0}, {0.5}, 0);
  const Problem problem(borrow(target), AffineMap::identity(2, 1, at::kDouble));
  at::Generator rng = make_generator(6);
  const Particles start = problem.start(200, rng);
  const Moved moved =
      make("hmc", 1)->step(problem, *make_path("geometric"), start, constant(2, 1.0),
                           at::tensor({1e-3, 5.0}, at::kDouble), rng);
  EXPECT_GT(moved.accept_prob[0].min().item<double>(), 0.999);
  EXPECT_LT(moved.accept_prob[1].mean().item<double>(), 0.2);
}

}  // namespace
}  // namespace crais
