// Monte Carlo Diffusion: its weights against the densities they stand for, and what training does.
#include "samplers/mcd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_math.h"
#include "core/rng.h"
#include "support/expect_error.h"
#include "support/statistics.h"
#include "support/targets.h"
#include "util/interrupt.h"

namespace crais {
namespace {

using testing::DiagonalGaussian;
using testing::LogGamma;

constexpr int64_t kMcdDim = 2;

at::Tensor log_normal(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& variance) {
  return (-0.5 * (x - mean).square() / variance - 0.5 * (2 * M_PI * variance).log()).sum(-1);
}

/// Each density written out, with the draws in the order in which the library makes them.
at::Tensor reference(const Problem& problem, const McdParameters& p, int64_t num_particles,
                     at::Generator& rng) {
  const at::Tensor sd = p.log_sd.exp().expand({kMcdDim}), ones = at::ones_like(sd);
  const auto grad = [&](const at::Tensor& beta, const at::Tensor& e) {
    return (1 - beta) * (p.loc - e) / sd.square() + beta * problem.evaluate(e).grad_log_gamma;
  };
  at::Tensor e = p.loc + sd * problem.draw(num_particles, rng);
  at::Tensor log_w = -log_normal(e, p.loc, sd.square());
  const int64_t num_steps = p.step_sizes.size(0);
  for (int64_t k = 1; k <= num_steps; ++k) {
    const at::Tensor beta = p.betas[k], eps = p.step_sizes[k - 1], variance = 2 * eps * ones;
    const at::Tensor mean = e + eps * grad(beta, e);
    const at::Tensor to = mean + variance.sqrt() * problem.draw(num_particles, rng);
    at::Tensor score =  // the network wants all steps at once
        grad(beta, to) + p.network.forward(to.expand({num_steps, -1, -1, -1}))[k - 1];
    if (p.of_score.defined())
      score = score + p.of_score[k - 1] * grad(beta, to) + p.of_place[k - 1] * to;
    const at::Tensor back = to - eps * grad(beta, to) + 2 * eps * score;
    log_w = log_w + log_normal(e, back, variance) - log_normal(to, mean, variance);
    e = to;
  }
  return log_w + problem.evaluate(e).log_gamma;
}

ScoreNetworkShape small(int64_t num_steps, bool linear = false) {
  return {kMcdDim, num_steps, 5, 3, linear};
}

/// With nothing at its default and the network at work.
at::Tensor make_flat(const ScoreNetworkShape& shape) {
  at::Generator rng = make_generator(3);
  const at::Tensor flat = McdParameters::initial(shape, /*step_size=*/0.05, at::kDouble, rng);
  return flat + 0.2 * at::empty_like(flat).normal_(0, 1, rng);
}

AffineMap base_of(int64_t num_problems) {
  return {at::tensor({0.3, 0.9}, at::kDouble).repeat({num_problems, 1}),
          at::tensor({0.9, 0.0, -0.4, 0.7}, at::kDouble).view({2, 2}).repeat({num_problems, 1, 1})};
}

double z_of(const Target& target, const at::Tensor& log_w) {
  return testing::z_score((log_mean_exp(log_w) - *target.true_log_normalizer()).exp(), 1);
}

TEST(Mcd, WeighsByTheDensitiesItStandsFor) {
  const LogGamma target(3, {3.0, 4.0});
  for (const bool triangular : {false, true}) {
    const Problem problem(borrow(target),
                          triangular ? base_of(3) : AffineMap::identity(3, kMcdDim, at::kDouble));
    for (const bool linear : {false, true}) {
      const McdParameters parameters(small(6, linear), make_flat(small(6, linear)));
      at::Generator rng = make_generator(1), same = make_generator(1);
      const at::Tensor log_w = mcd_log_weights(problem, parameters, 7, rng).log_w;
      EXPECT_EQ(log_w.scalar_type(), at::kDouble);
      EXPECT_LT(testing::max_abs_diff(log_w, reference(problem, parameters, 7, same)), 1e-10);
    }
  }
}

/// Its gradient is there, and no graph.
class Opaque : public DiagonalGaussian {
 public:
  using DiagonalGaussian::DiagonalGaussian;
  at::Tensor log_density(const at::Tensor& z) const override {
    return DiagonalGaussian::log_density(z).detach();
  }
  Evaluation evaluate(const at::Tensor& z) const override { return Target::evaluate(z); }
};

TEST(Mcd, RefusesToLearnWithoutAGraph) {
  const Opaque target(2, {0.8, -0.4}, {0.7, 0.4}, 0.5);
  const Problem problem(borrow(target), base_of(2));
  const at::Tensor flat = make_flat(small(6)).requires_grad_(true);
  at::Generator rng = make_generator(7);
  expect_error(ErrorKind::kArgument, {"mcd", "second derivatives"}, [&] {
    mcd_log_weights(problem, {small(6), flat}, 5, rng);
  });
}

TEST(Mcd, DifferentiatesTheBound) {
  const LogGamma target(2, {3.0, 4.0});
  const Problem problem(borrow(target), base_of(2));
  const ScoreNetworkShape shape = small(4, /*linear=*/true);
  const at::Tensor flat = make_flat(shape);
  const auto objective = [&](const at::Tensor& at) {
    at::Generator rng = make_generator(8);
    return mcd_log_weights(problem, {shape, at}, 6, rng).log_w.mean();
  };
  const at::Tensor leaf = flat.clone().requires_grad_(true);
  objective(leaf).backward();
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const at::Tensor up = flat.clone(), down = flat.clone();
    up[i] += kStep;
    down[i] -= kStep;
    const double slope = (objective(up) - objective(down)).item<double>() / (2 * kStep);
    EXPECT_NEAR(leaf.grad()[i].item<double>(), slope, 1e-6 * (1 + std::abs(slope))) << i;
  }
  EXPECT_GT(leaf.grad().abs().min().item<double>(), 0);  // nothing is left out
}

McdTrainingOptions short_training() {
  return {.step_size = 0.05, .iterations = 150, .batch = 32, .validate_every = 25};
}

TEST(McdTraining, RaisesTheBoundAndStaysUnbiased) {
  const LogGamma pilots(4, {3.0, 4.0});
  const double truth = (*pilots.true_log_normalizer())[0].item<double>();
  const Problem problem(borrow(pilots), AffineMap::identity(4, kMcdDim, at::kDouble));
  const TrainedMcd trained = train_mcd(problem, small(6), short_training(), 1);
  EXPECT_EQ(trained.iterations, 150);
  EXPECT_GT(trained.elbo, trained.initial_elbo + 0.8 * (truth - trained.initial_elbo));
  EXPECT_EQ(trained.cost.gradients, 7 * (2 * 150 * 32 + 7 * 256));

  constexpr int64_t kProblems = 4000;
  const LogGamma target(kProblems, {3.0, 4.0});
  const Problem fresh(borrow(target), AffineMap::identity(kProblems, kMcdDim, at::kDouble));
  at::Generator rng = make_generator(9);
  const McdParameters parameters(small(6), trained.flat);
  EXPECT_FALSE(parameters.loc.requires_grad());
  EXPECT_EQ(parameters.betas[-1].item<double>(), 1.0);
  EXPECT_GT(parameters.loc.abs().min().item<double>(), 0.05);
  const at::Tensor log_w = mcd_log_weights(fresh, parameters, 8, rng).log_w;
  EXPECT_LT(std::abs(z_of(target, log_w)), 5);
  EXPECT_NEAR(log_w.mean().item<double>(), trained.elbo, 0.1);
}

TEST(McdTraining, KeepsTheBestAndStopsWhereNothingIsGained) {
  // The base is the target: whatever is learned is worse, or noise.
  const at::Tensor mean = testing::row({0.8, -0.4}), sd = testing::row({0.7, 0.4});
  const DiagonalGaussian target(mean, sd, at::zeros({1}, at::kDouble));
  const Problem problem(borrow(target), AffineMap(mean, sd));
  McdTrainingOptions options = short_training();
  options.iterations = 10000;
  options.learning_rate = 0.3;
  options.validate_every = 5;
  options.patience = 3;
  const TrainedMcd trained = train_mcd(problem, small(4), options, 1);
  EXPECT_LT(trained.iterations, 10000);
  EXPECT_GE(trained.elbo, trained.initial_elbo);
}

TEST(McdTraining, HeedsASignal) {
  const LogGamma target(2, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(2, kMcdDim, at::kDouble));
  set_interrupted(true);
  expect_error(ErrorKind::kInterrupted, {"interrupted"},
               [&] { train_mcd(problem, small(6), short_training(), 1); });
  set_interrupted(false);
}

TEST(McdTraining, SaysWhereItDiverges) {
  const LogGamma target(2, {3.0, 4.0});
  const Problem problem(borrow(target), AffineMap::identity(2, kMcdDim, at::kDouble));
  McdTrainingOptions options = short_training();
  options.step_size = 500;
  expect_error(ErrorKind::kArgument, {"mcd", "step="},
               [&] { train_mcd(problem, small(6), options, 1); });
}

}  // namespace
}  // namespace crais
