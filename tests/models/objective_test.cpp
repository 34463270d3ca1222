#include "models/objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/rng.h"
#include "support/expect_error.h"
#include "util/error.h"

namespace crais {
namespace {

struct ObjectiveCase {
  Vae vae;
  at::Tensor x;
};

ObjectiveCase small_problem() {
  VaeArchitecture architecture{.image_rows = 3, .image_cols = 4, .latent = 2, .hidden = {8}};
  at::Generator generator = make_generator(5);
  return {make_vae(architecture, 4).to(at::kCPU, at::kDouble),
          at::rand({5, 12}, generator, at::kDouble).round()};
}

at::Tensor noise(std::vector<int64_t> sizes, uint64_t seed = 6) {
  at::Generator generator = make_generator(seed);
  return at::randn(sizes, generator, at::kDouble);
}

at::Tensor log_normal(const at::Tensor& z, const at::Tensor& mean, const at::Tensor& log_var) {
  return (-0.5 * ((z - mean).square() / log_var.exp() + log_var + std::log(2 * M_PI))).sum(-1);
}

/// log p(x, z) - log q(z | x) of the sample that `noise` makes, term by term: [K, B].
at::Tensor log_weights(const ObjectiveCase& problem, const at::Tensor& noise) {
  const auto posterior = problem.vae.encode(problem.x);
  const at::Tensor z = posterior.mean + (posterior.log_var / 2).exp() * noise;
  const at::Tensor zero = at::zeros({1}, at::kDouble);
  return problem.vae.architecture.likelihood.log_prob(problem.x, problem.vae.decoder.forward(z)) +
         log_normal(z, zero, zero) - log_normal(z, posterior.mean, posterior.log_var);
}

TEST(Objective, KlDivergenceAgreesWithMonteCarlo) {
  const Vae::Posterior posterior{at::tensor({0.7, -1.2}, at::kDouble).view({1, 2}),
                                 at::tensor({-1.0, 0.5}, at::kDouble).view({1, 2})};
  constexpr int64_t kSamples = 200000;
  const at::Tensor z = posterior.mean + (posterior.log_var / 2).exp() * noise({kSamples, 2});
  const at::Tensor zero = at::zeros({1}, at::kDouble);
  const at::Tensor difference =
      log_normal(z, posterior.mean, posterior.log_var) - log_normal(z, zero, zero);
  const double error = difference.std().item<double>() / std::sqrt(kSamples);
  EXPECT_LT(error, 0.01);
  EXPECT_NEAR(kl_divergence(posterior).item<double>(), difference.mean().item<double>(), 5 * error);
}

TEST(Objective, IwaeIsTheLogOfTheMeanWeight) {
  const ObjectiveCase problem = small_problem();
  for (const int64_t samples : {1, 7}) {
    const at::Tensor e = noise({samples, 5, 2}), weights = log_weights(problem, e);
    const Bounds bounds = evaluate({Objective::Kind::kIwae, samples}, problem.vae, problem.x, e);
    EXPECT_TRUE(at::allclose(bounds.bound, weights.exp().mean(0).log(), 1e-10));
    EXPECT_TRUE(at::equal(bounds.maximised, bounds.bound));
    EXPECT_TRUE((bounds.bound >= weights.mean(0) - 1e-10).all().item<bool>());
  }
}

TEST(Objective, ElboIsReconstructionLessKl) {
  const ObjectiveCase problem = small_problem();
  const at::Tensor e = noise({1, 5, 2});
  const auto posterior = problem.vae.encode(problem.x);
  const at::Tensor z = posterior.mean + (posterior.log_var / 2).exp() * e[0];
  const at::Tensor reconstruction =
      problem.vae.architecture.likelihood.log_prob(problem.x, problem.vae.decoder.forward(z));
  const Bounds bounds = evaluate({}, problem.vae, problem.x, e, 0.25);
  EXPECT_TRUE(at::allclose(bounds.kl, kl_divergence(posterior)));
  EXPECT_TRUE(at::allclose(bounds.elbo, reconstruction - bounds.kl));
  EXPECT_TRUE(at::equal(bounds.bound, bounds.elbo));
  EXPECT_TRUE(at::allclose(bounds.maximised, reconstruction - 0.25 * bounds.kl));
}

TEST(Objective, ParsesWhatItPrints) {
  for (const char* text : {"elbo", "iwae:5"}) EXPECT_EQ(to_string(parse_objective(text)), text);
  expect_error(ErrorKind::kArgument, {"vimco", "iwae:K"}, [] { parse_objective("vimco"); });
  expect_error(ErrorKind::kArgument, {"iwae:0"}, [] { parse_objective("iwae:0"); });
  expect_error(ErrorKind::kArgument, {"samples"}, [] { parse_objective("iwae"); });
  expect_error(ErrorKind::kArgument, {"elbo:3"}, [] { parse_objective("elbo:3"); });
}

TEST(Decay, FollowsItsFormula) {
  const auto rate = [](const char* text, int64_t epoch) {
    return parse_decay(text).rate(1e-3, epoch, 11);
  };
  EXPECT_EQ(rate("none", 10), 1e-3);
  EXPECT_DOUBLE_EQ(rate("cosine:1e-5", 0), 1e-3);
  EXPECT_DOUBLE_EQ(rate("cosine:1e-5", 5), 0.5 * (1e-3 + 1e-5));
  EXPECT_DOUBLE_EQ(rate("cosine:1e-5", 10), 1e-5);
  EXPECT_DOUBLE_EQ(parse_decay("cosine").rate(1e-3, 0, 1), 1e-3);
}

TEST(Decay, ParsesWhatItPrints) {
  EXPECT_EQ(to_string(parse_decay("none")), "none");
  EXPECT_EQ(parse_decay(to_string(parse_decay("cosine:1e-5"))).final_rate, 1e-5);
  expect_error(ErrorKind::kArgument, {"linear", "cosine:FINAL"}, [] { parse_decay("linear"); });
}

}  // namespace
}  // namespace crais
