#include "targets/decoder_posterior.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/rng.h"
#include "support/activations.h"
#include "support/statistics.h"
#include "util/error.h"

namespace crais {
namespace {

using testing::max_abs_diff;

struct Case {
  std::string activation, likelihood;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* activation :
       {"tanh", "elu", "relu", "leaky-relu:0.2", "softplus", "sigmoid", "silu", "gelu", "mish"})
    for (const char* likelihood : {"bernoulli", "continuous-bernoulli", "gaussian:0.3"})
      all.push_back({activation, likelihood});
  return all;
}

Vae make_case(const Case& c, int64_t rows = 4, int64_t cols = 3, int64_t latent = 5,
              const std::vector<int64_t>& hidden = {9, 7}) {
  VaeArchitecture architecture{.image_rows = rows,
                               .image_cols = cols,
                               .latent = latent,
                               .hidden = hidden,
                               .activation = parse_activation(c.activation),
                               .likelihood = parse_likelihood(c.likelihood)};
  Vae vae = make_vae(architecture, 1).to(at::kCPU, at::kDouble);
  at::Generator rng = make_generator(2);  // biases that are not zero
  for (auto* mlp : {&vae.encoder, &vae.decoder})
    for (auto& layer : mlp->layers)
      layer.bias = 0.5 * at::randn(layer.bias.sizes(), rng, at::kDouble);
  return vae;
}

class NetworkPosteriors : public ::testing::TestWithParam<Case> {
 protected:
  NetworkPosteriors() : vae_(make_case(GetParam())) {
    at::Generator rng = make_generator(3);
    images_ = (at::rand({3, 12}, rng, at::kDouble) < 0.5).to(at::kDouble);
    z_ = 1.5 * at::randn({3, 6, 5}, rng, at::kDouble);
  }

  Vae vae_;
  at::Tensor images_, z_;
};

INSTANTIATE_TEST_SUITE_P(Every, NetworkPosteriors, ::testing::ValuesIn(cases()),
                         [](const auto& instance) {
                           return testing::name_of_test(instance.param.activation + "_" +
                                                        instance.param.likelihood.substr(0, 4));
                         });

/// tests/models/vae_test.cpp has what networks and likelihoods compute.
TEST_P(NetworkPosteriors, ValueIsTheDefinition) {
  const DecoderPosterior target(vae_, images_);
  const at::Tensor output = vae_.decoder.forward(z_.flatten(0, 1)).view({3, 6, 12});
  const at::Tensor expected = vae_.architecture.likelihood.log_prob(images_.unsqueeze(1), output) -
                              (0.5 * z_.square() + 0.5 * std::log(2 * M_PI)).sum(-1);
  EXPECT_LT(max_abs_diff(target.evaluate(z_).log_density, expected), 1e-10);
  EXPECT_LT(max_abs_diff(target.log_density(z_), expected), 1e-10);
}

TEST_P(NetworkPosteriors, GradientIsAutograds) {
  const DecoderPosterior target(vae_, images_);
  const Evaluation fast = target.evaluate(z_), slow = target.Target::evaluate(z_);
  EXPECT_LT(max_abs_diff(fast.log_density, slow.log_density), 1e-11);
  EXPECT_LT(max_abs_diff(fast.grad, slow.grad), 1e-11);
}

// What learns on a posterior differentiates its density twice.
TEST_P(NetworkPosteriors, DensityIsDifferentiableTwice) {
  const c10::AutoGradMode with_grad(true);
  const DecoderPosterior target(vae_, images_);
  at::Generator rng = make_generator(4);
  const at::Tensor v = at::randn({3, 6, 5}, rng, at::kDouble);
  const at::Tensor z = z_.clone().requires_grad_(true);
  const at::Tensor grad = torch::autograd::grad({target.log_density(z).sum()}, {z}, {},
                                                /*retain_graph=*/true, /*create_graph=*/true)[0];
  EXPECT_LT(max_abs_diff(grad, target.evaluate(z_).grad), 1e-11);
  const at::Tensor product = torch::autograd::grad({grad}, {z}, {v})[0];
  constexpr double kStep = 1e-6;
  const at::Tensor change =
      (target.evaluate(z_ + kStep * v).grad - target.evaluate(z_ - kStep * v).grad) / (2 * kStep);
  EXPECT_LT(max_abs_diff(product, change), 1e-5);
}

TEST_P(NetworkPosteriors, WhateverEvaluatesItAgrees) {
  const Vae vae = vae_.to(at::kCPU, at::kFloat);
  const DecoderPosterior chosen(vae, images_.to(at::kFloat)),
      aten(vae, images_.to(at::kFloat), {}, nullptr);
  EXPECT_EQ(aten.evaluator(), "aten");
  const at::Tensor z = z_.to(at::kFloat), turned = z.transpose(0, 2).contiguous().transpose(0, 2);
  const at::Tensor truth = aten.log_density(z);
  // Sums of as large numbers, in float32 and in another order.
  const double near = 1e-4 + 1e-6 * truth.abs().max().item<double>();
  EXPECT_LT(max_abs_diff(chosen.log_density(z), truth), near);
  EXPECT_LT(max_abs_diff(chosen.log_density(turned), truth), near);
  // Autograd still finds its way through, and one image may serve several rows of particles.
  EXPECT_LT(max_abs_diff(chosen.Target::evaluate(z).grad, chosen.evaluate(z).grad), 1e-4);
  const DecoderPosterior one(vae, images_.to(at::kFloat).slice(0, 1, 2));
  EXPECT_LT(max_abs_diff(one.log_density(z)[1], truth[1]), near);
}

// Whether a kernel computes them or ATen.
TEST_P(NetworkPosteriors, ForcesInBfloat16HaveExactValues) {
  const DecoderPosterior fused(vae_.to(at::kCPU, at::kFloat), images_.to(at::kFloat)),
      aten(vae_.to(at::kCPU, at::kFloat), images_.to(at::kFloat), {}, nullptr), wide(vae_, images_);
  EXPECT_FALSE(aten.traits().forces_pay);
  EXPECT_FALSE(wide.traits().forces_pay);
  for (const DecoderPosterior* exact : {&fused, &aten, &wide}) {
    const at::Tensor z = z_.to(exact->options().dtype());
    const auto cheap = exact->with_forces(at::kBFloat16);
    const Evaluation truth = exact->evaluate(z), found = cheap->evaluate(z);
    EXPECT_LT(max_abs_diff(found.log_density, truth.log_density.to(found.log_density.dtype())),
              5e-4);
    const at::Tensor error = (found.grad - truth.grad).norm(2, {-1}) / truth.grad.norm(2, {-1});
    EXPECT_LT(error.max().item<double>(), 3e-2);
    EXPECT_GT(error.max().item<double>(), 1e-5);
    const at::Tensor index = at::tensor({2, 0}, at::kLong);
    const Evaluation part = cheap->select(index)->evaluate(z.index_select(0, index));
    EXPECT_LT(max_abs_diff(part.grad, found.grad.index_select(0, index)), 1e-4);
  }
}

TEST(DecoderPosterior, RejectsImagesOfAnotherSize) {
  const Vae vae = make_case({"tanh", "bernoulli"});
  EXPECT_THROW(DecoderPosterior(vae, at::zeros({3, 13}, at::kDouble)), Error);
  EXPECT_THROW(DecoderPosterior(vae, at::zeros({12}, at::kDouble)), Error);
}

TEST(DecoderPosterior, KnowsItsEncoder) {
  const Vae vae = make_case({"tanh", "bernoulli"});
  const at::Tensor images = at::ones({3, 12}, at::kDouble), e = at::ones({3, 1, 5}, at::kDouble);
  const auto [mean, log_var] = vae.encode(images);
  const AffineMap base = *DecoderPosterior(vae, images).amortised_base();
  EXPECT_LT(max_abs_diff(base.to_z(e).squeeze(1), mean + (0.5 * log_var).exp()), 1e-14);
  const Vae decoder_only{vae.architecture, {}, vae.decoder};
  EXPECT_FALSE(DecoderPosterior(decoder_only, images).amortised_base().has_value());
}

TEST_P(NetworkPosteriors, CurvatureIsGaussNewton) {
  const DecoderPosterior target(vae_, images_);
  const at::Tensor z = z_.select(1, 0);
  const at::Tensor found = target.curvature(z);
  constexpr double kStep = 1e-5;
  at::Tensor jacobian = at::zeros({3, 12, 5}, at::kDouble);
  for (int64_t d = 0; d < 5; ++d) {
    const at::Tensor shift = kStep * at::one_hot(at::tensor({d}), 5).to(at::kDouble);
    jacobian.select(2, d).copy_(
        (vae_.decoder.forward(z + shift) - vae_.decoder.forward(z - shift)) / (2 * kStep));
  }
  const at::Tensor output = vae_.decoder.forward(z), s = at::sigmoid(output);
  const std::string& likelihood = GetParam().likelihood;
  const at::Tensor weight = likelihood == "bernoulli" ? s * (1 - s)
                            : likelihood == "continuous-bernoulli"
                                ? output.pow(-2) - 0.25 * at::sinh(0.5 * output).pow(-2)
                                : at::full_like(s, 1 / (0.3 * 0.3));
  const at::Tensor expected =
      at::eye(5, at::kDouble) +
      at::matmul((jacobian * weight.unsqueeze(2)).transpose(1, 2), jacobian);
  EXPECT_LT(max_abs_diff(found, expected), 1e-5 * expected.abs().max().item<double>());
}

TEST(DecoderPosterior, BlocksOfALargeBatchAreTheSameFunction) {
  const Vae vae = make_case({"tanh", "bernoulli"});
  at::Generator rng = make_generator(5);
  // By images (5 x 1500 particles), and by the particles of one (3 x 4200); 512 is a block.
  for (const auto& [problems, particles] : {std::pair{5, 1500}, std::pair{3, 4200}}) {
    const at::Tensor images = (at::rand({problems, 12}, rng, at::kDouble) < 0.5).to(at::kDouble);
    const at::Tensor z = at::randn({problems, particles, 5}, rng, at::kDouble);
    const DecoderPosterior target(vae, images);
    const Evaluation all = target.evaluate(z);
    EXPECT_EQ(all.grad.sizes(), z.sizes());
    EXPECT_LT(max_abs_diff(all.log_density, target.log_density(z)), 1e-12);
    for (const int64_t begin : {0, 1490, particles - 9}) {  // within a block, at ends, the last
      const Evaluation part = target.evaluate(z.slice(1, begin, begin + 9));
      EXPECT_LT(max_abs_diff(part.log_density, all.log_density.slice(1, begin, begin + 9)), 1e-12);
      EXPECT_LT(max_abs_diff(part.grad, all.grad.slice(1, begin, begin + 9)), 1e-12);
    }
  }
}

/// With products in bfloat16 where the processor has them: a decoder of large weights, whose
/// curvatures have eigenvalues from 1 to thousands.
TEST(DecoderPosterior, CurvatureInSinglePrecisionIsThatOfDoubles) {
  VaeArchitecture architecture{.latent = 20, .hidden = {50, 60}};
  Vae vae = make_vae(architecture, 1);
  for (Layer& layer : vae.decoder.layers) layer.weight = 4 * layer.weight;
  at::Generator rng = make_generator(7);
  const at::Tensor images = (at::rand({30, 784}, rng) < 0.4).to(at::kFloat);
  const at::Tensor z = at::randn({30, 20}, rng);
  const at::Tensor found = DecoderPosterior(vae, images).curvature(z).to(at::kDouble);
  const at::Tensor exact =
      DecoderPosterior(vae.to(at::kCPU, at::kDouble), images.to(at::kDouble), {}, nullptr)
          .curvature(z.to(at::kDouble));
  const at::Tensor size = exact.diagonal(0, 1, 2).sqrt();
  const at::Tensor unit = size.unsqueeze(1) * size.unsqueeze(2);
  EXPECT_LT(((found - exact) / unit).abs().max().item<double>(), 0.01);
  EXPECT_GT(exact.diagonal(0, 1, 2).max().item<double>(), 100);
  // What a base is made of: the posterior of one fits the other's to a few hundredths of a nat.
  const at::Tensor ratio = at::linalg_solve(exact, found);
  const at::Tensor divergence =
      0.5 * (ratio.diagonal(0, 1, 2).sum(-1) - 20 - std::get<1>(at::linalg_slogdet(ratio)));
  EXPECT_LT(divergence.max().item<double>(), 0.01);
  EXPECT_GE(std::get<0>(at::linalg_eigh(found)).min().item<double>(), 0.999);
}

TEST(DecoderPosterior, SelectsProblemsWithTheirLatents) {
  const Vae vae = make_case({"tanh", "bernoulli"});
  at::Generator rng = make_generator(9);
  const auto [images, latents] = simulate(vae, 4, rng);
  const DecoderPosterior all(vae, images, latents);
  const auto part = all.select(at::tensor({3, 1}));
  const at::Tensor z = at::randn({4, 2, 5}, rng, at::kDouble);
  const at::Tensor index = at::tensor({3, 1});
  // A BLAS may round products of other sizes otherwise.
  EXPECT_LT(max_abs_diff(part->log_density(z.index_select(0, index)),
                         all.log_density(z).index_select(0, index)),
            1e-12);
  const at::Tensor draws = *part->exact_sample(3, rng);
  EXPECT_TRUE(at::equal(draws.select(1, 2), latents.index_select(0, index)));
  EXPECT_FALSE(DecoderPosterior(vae, images).exact_sample(1, rng).has_value());
  EXPECT_THROW(DecoderPosterior(vae, images, latents.slice(0, 0, 3)), Error);
}

TEST(Simulate, PixelsHaveTheirProbabilitiesAndTheirNoise) {
  const at::Tensor none = at::zeros({}, at::kDouble);
  const auto expect = [&](const at::Tensor& x, double mean) {
    EXPECT_LT(testing::z_scores(x, none + mean).abs().max().item<double>(), 5);
  };
  for (const char* likelihood : {"bernoulli", "gaussian:0.3"}) {
    SCOPED_TRACE(likelihood);
    const Vae vae = make_case({"tanh", likelihood});
    at::Generator rng = make_generator(5);
    const auto [images, latents] = simulate(vae, 20000, rng);
    const at::Tensor output = vae.decoder.forward(latents), p = at::sigmoid(output);
    const at::Tensor residual =
        likelihood[0] == 'b' ? (images - p) / (p * (1 - p)).sqrt() : (images - output) / 0.3;
    expect(residual, 0);
    expect(residual.square(), 1);
    expect(latents, 0);
    expect(latents.square(), 1);
    expect(residual.unsqueeze(2) * latents.unsqueeze(1), 0);  // each image with its own latent
  }
}

}  // namespace
}  // namespace crais
