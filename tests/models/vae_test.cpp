#include "models/vae.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/activations.h"
#include "support/scratch.h"
#include "util/error.h"

namespace crais {
namespace {

TEST(Likelihood, BernoulliIsTheLogOfItsProbability) {
  const Likelihood likelihood;
  const double logits[] = {-1.5, 0.3, 2.0}, pixels[] = {0.0, 1.0, 0.25};
  double expected = 0;
  for (int i = 0; i < 3; ++i) {
    const double p = 1 / (1 + std::exp(-logits[i]));
    expected += pixels[i] * std::log(p) + (1 - pixels[i]) * std::log(1 - p);
  }
  const at::Tensor x = at::tensor({0.0, 1.0, 0.25}, at::kDouble);
  const at::Tensor output = at::tensor({-1.5, 0.3, 2.0}, at::kDouble);
  EXPECT_NEAR(likelihood.log_prob(x, output).item<double>(), expected, 1e-12);
}

TEST(Likelihood, BernoulliIsExactAtHugeLogits) {
  const Likelihood likelihood;
  const at::Tensor output = at::tensor({1e4, -1e4}, at::kDouble);
  EXPECT_EQ(likelihood.log_prob(at::tensor({1.0, 0.0}, at::kDouble), output).item<double>(), 0.0);
  EXPECT_EQ(likelihood.log_prob(at::tensor({0.0, 1.0}, at::kDouble), output).item<double>(), -2e4);
}

TEST(Likelihood, GaussianIsTheLogOfItsDensity) {
  const Likelihood likelihood = parse_likelihood("gaussian:0.5");
  double expected = 0;
  for (const double difference : {0.7, -0.2})
    expected += -0.5 * std::pow(difference / 0.5, 2) - std::log(0.5 * std::sqrt(2 * M_PI));
  const at::Tensor x = at::tensor({1.0, 0.0}, at::kDouble);
  const at::Tensor output = at::tensor({0.3, 0.2}, at::kDouble);
  EXPECT_NEAR(likelihood.log_prob(x, output).item<double>(), expected, 1e-12);
}

/// By the trapezoid rule over [0, 1].
at::Tensor integral(const at::Tensor& values) {
  return (values.sum(0) - 0.5 * (values[0] + values[-1])) / static_cast<double>(values.size(0) - 1);
}

TEST(Likelihood, ContinuousBernoulliIsADensityWithItsMoments) {
  const Likelihood likelihood = parse_likelihood("continuous-bernoulli");
  const at::Tensor logits =
      at::tensor({-30., -2., -0.69, -0.049, -1e-5, 0., 0.02, 0.3, 0.71, 40.}, at::kDouble);
  const at::Tensor x = at::linspace(0, 1, 40001, at::kDouble).unsqueeze(1);
  const at::Tensor density =
      likelihood.log_prob(x.unsqueeze(2), logits.unsqueeze(0).unsqueeze(2)).exp();
  const at::Tensor mean = integral(density * x);
  EXPECT_TRUE(at::allclose(integral(density), at::ones_like(logits), 0, 1e-6));
  EXPECT_TRUE(at::allclose(likelihood.mean(logits), mean, 0, 1e-6));
  EXPECT_TRUE(
      at::allclose(likelihood.fisher(logits), integral(density * (x - mean).square()), 0, 1e-6));
  EXPECT_TRUE(at::allclose(likelihood.grad(x[9], logits.clone()), x[9] - mean, 0, 1e-6));
  // The quantile of u is where the density's integral is u.
  const at::Tensor u = at::full_like(logits, 0.37), q = likelihood.draw(logits, u);
  const at::Tensor below = integral(at::where(x <= q, density, at::zeros_like(density)));
  EXPECT_TRUE(at::allclose(below, u, 0, 1e-3)) << below;
}

TEST(Likelihood, BroadcastsOverSamples) {
  const at::Tensor x = at::rand({4, 6}), output = at::randn({3, 4, 6});
  const at::Tensor log_prob = Likelihood{}.log_prob(x, output);
  ASSERT_EQ(log_prob.sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(at::allclose(log_prob[2], Likelihood{}.log_prob(x, output[2])));
}

TEST(Likelihood, ParsesWhatItPrints) {
  for (const char* text : {"bernoulli", "continuous-bernoulli", "gaussian:0.25", "gaussian:0.3"})
    EXPECT_EQ(to_string(parse_likelihood(text)), text);
  expect_error(ErrorKind::kArgument, {"poisson", "bernoulli"}, [] { parse_likelihood("poisson"); });
  expect_error(ErrorKind::kArgument, {"gaussian:0"}, [] { parse_likelihood("gaussian:0"); });
  expect_error(ErrorKind::kArgument, {"sd"}, [] { parse_likelihood("gaussian"); });
}

class Activations : public ::testing::TestWithParam<const char*> {};

TEST_P(Activations, StandBetweenLayersAndNotAfterTheLast) {
  // One unit a layer, so that the network can be written down.
  const auto layer = [](double weight, double bias) {
    return Layer{at::full({1, 1}, weight, at::kDouble), at::full({1}, bias, at::kDouble)};
  };
  const Activation activation = parse_activation(GetParam());
  EXPECT_EQ(to_string(activation), GetParam());
  const Network network = mlp({layer(1.5, 0.2), layer(-2.0, 0.1), layer(3.0, -0.5)}, activation);
  for (const double x : {-1.3, 0.4}) {
    const double hidden = testing::activated(GetParam(), 1.5 * x + 0.2);
    const double expected = 3.0 * testing::activated(GetParam(), -2.0 * hidden + 0.1) - 0.5;
    EXPECT_NEAR(network.forward(at::full({1, 1}, x, at::kDouble)).item<double>(), expected, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         ::testing::Values("tanh", "elu", "relu", "leaky-relu", "leaky-relu:0.2",
                                           "softplus", "sigmoid", "silu", "gelu", "mish"),
                         [](const auto& instance) {
                           return testing::name_of_test(instance.param);
                         });

TEST(Vae, MirrorsItsHiddenLayers) {
  VaeArchitecture architecture;
  architecture.hidden = {30, 20};
  architecture.latent = 7;
  const Vae vae = make_vae(architecture, 1);
  const auto posterior = vae.encode(at::rand({3, 784}));
  EXPECT_EQ(posterior.mean.sizes(), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(posterior.log_var.sizes(), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(vae.decoder.layers[0].weight.sizes(), (std::vector<int64_t>{20, 7}));
  EXPECT_EQ(vae.decoder.forward(posterior.mean).sizes(), (std::vector<int64_t>{3, 784}));
}

TEST(Vae, ItsFirstWeightsDependOnTheSeedAlone) {
  const VaeArchitecture architecture;
  const Vae one = make_vae(architecture, 1), again = make_vae(architecture, 1),
            other = make_vae(architecture, 2);
  EXPECT_TRUE(at::equal(one.decoder.layers[0].weight, again.decoder.layers[0].weight));
  EXPECT_FALSE(at::equal(one.decoder.layers[0].weight, other.decoder.layers[0].weight));
}

TEST(Vae, RejectsUnknownActivations) {
  expect_error(ErrorKind::kArgument, {"sine", "softplus", "leaky-relu[:SLOPE]"},
               [] { parse_activation("sine"); });
  expect_error(ErrorKind::kArgument, {"leaky-relu:1.5", "slope"},
               [] { parse_activation("leaky-relu:1.5"); });
  expect_error(ErrorKind::kArgument, {"tanh:2"}, [] { parse_activation("tanh:2"); });
}

}  // namespace
}  // namespace crais
