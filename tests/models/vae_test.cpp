#include "models/vae.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/activations.h"
#include "support/expect_error.h"
#include "util/error.h"

namespace crais {
namespace {

TEST(Likelihood, IsTheLogOfItsProbability) {
  const std::vector<double> x = {0.0, 1.0, 0.25}, outputs = {-1.5, 0.3, 2.0};
  double bernoulli = 0, gaussian = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double p = 1 / (1 + std::exp(-outputs[i]));
    bernoulli += x[i] * std::log(p) + (1 - x[i]) * std::log(1 - p);
    gaussian += -0.5 * std::pow((x[i] - outputs[i]) / 0.5, 2) - std::log(0.5 * std::sqrt(2 * M_PI));
  }
  const auto found = [&](const char* likelihood) {
    return parse_likelihood(likelihood)
        .log_prob(at::tensor(x, at::kDouble), at::tensor(outputs, at::kDouble))
        .item<double>();
  };
  EXPECT_NEAR(found("bernoulli"), bernoulli, 1e-12);
  EXPECT_NEAR(found("gaussian:0.5"), gaussian, 1e-12);
}

TEST(Likelihood, BernoulliIsExactAtHugeLogits) {
  const Likelihood likelihood;
  const at::Tensor output = at::tensor({1e4, -1e4}, at::kDouble);
  EXPECT_EQ(likelihood.log_prob(at::tensor({1.0, 0.0}, at::kDouble), output).item<double>(), 0.0);
  EXPECT_EQ(likelihood.log_prob(at::tensor({0.0, 1.0}, at::kDouble), output).item<double>(), -2e4);
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

TEST(Vae, RejectsUnknownActivations) {
  expect_error(ErrorKind::kArgument, {"sine", "softplus", "leaky-relu[:SLOPE]"},
               [] { parse_activation("sine"); });
  expect_error(ErrorKind::kArgument, {"leaky-relu:1.5", "slope"},
               [] { parse_activation("leaky-relu:1.5"); });
  expect_error(ErrorKind::kArgument, {"tanh:2"}, [] { parse_activation("tanh:2"); });
}

}  // namespace
}  // namespace crais
