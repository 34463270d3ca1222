#include "kernels/fused_decoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "core/rng.h"
#include "kernels/every_kernel.h"
#include "models/checkpoint.h"
#include "support/expect_error.h"
#include "support/guarded_memory.h"
#include "support/temporary_folder.h"
#include "targets/decoder_posterior.h"

namespace crais {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Vae make_case(const std::string& activation, std::vector<int64_t> hidden, int64_t latent = 5,
              int64_t rows = 28, int64_t cols = 28) {
  VaeArchitecture architecture{.image_rows = rows,
                               .image_cols = cols,
                               .latent = latent,
                               .hidden = std::move(hidden),
                               .activation = parse_activation(activation)};
  Vae vae = make_vae(architecture, 1);
  at::Generator rng = make_generator(2);  // weights and biases as uneven as a trained network's
  for (auto& layer : vae.decoder.layers) {
    layer.weight = 1.7 * layer.weight;
    layer.bias = 0.5 * at::randn(layer.bias.sizes(), rng) - 0.2;
  }
  return vae;
}

Evaluation reference(const Vae& vae, const at::Tensor& images, const at::Tensor& z) {
  return reference(decoder_network(vae), images, z);
}

/// Checks the gradient in float32, or in 8 bits.
bool grad_is_right(const FusedKernel& kernel, const Evaluation& found, const Evaluation& truth) {
  return grad_error(found, truth) < (kernel.in_fixed_point ? 0.1 : 1e-5);
}

/// Grey images: any number in [0, 1], ends included.
at::Tensor make_images(int64_t count, const Vae& vae, at::Generator& rng) {
  const at::Tensor u = at::rand({count, vae.architecture.num_pixels()}, rng);
  return (1.6 * u - 0.3).clamp(0, 1);
}

class EveryKernel : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const FusedKernel& kernel() const { return kernel_of(std::get<0>(GetParam())); }
  FusedDecoder pack(const Vae& vae) const { return {decoder_network(vae), kernel()}; }
  Vae make(std::vector<int64_t> hidden, int64_t latent = 5, int64_t rows = 28,
           int64_t cols = 28) const {
    return make_case(std::get<1>(GetParam()), std::move(hidden), latent, rows, cols);
  }

  at::Generator rng_ = make_generator(3);
};

INSTANTIATE_TEST_SUITE_P(All, EveryKernel,
                         ::testing::Combine(::testing::ValuesIn(names_of_kernels()),
                                            ::testing::Values("tanh", "elu", "relu", "leaky-relu",
                                                              "softplus", "sigmoid", "silu", "gelu",
                                                              "mish")),
                         [](const auto& instance) {
                           return testing::name_of_test(std::get<0>(instance.param) + "_" +
                                                        std::get<1>(instance.param));
                         });

TEST_P(EveryKernel, AgreesWithAutogradInDoublePrecision) {
  const testing::GuardedMemory guard;
  const Vae vae = make({60, 100}, 20);
  const at::Tensor images = make_images(5, vae, rng_), z = at::randn({5, 23, 20}, rng_);
  const FusedDecoder decoder = pack(vae);
  const Evaluation found = decoder.evaluate(z, images), truth = reference(vae, images, z);
  EXPECT_GT(truth.log_density.abs().min().item<double>(), 400);  // where 1e-3 is asked for
  EXPECT_LT(value_error(found, truth), 1e-3);
  EXPECT_TRUE(grad_is_right(kernel(), found, truth)) << grad_error(found, truth);
  EXPECT_EQ(grad_error(found, truth) > 1e-4, kernel().in_fixed_point);  // cheap ones are cheap
}

TEST_P(EveryKernel, AgreesOnNormalPixels) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{28, 28}, {7, 5}, {1, 250}}) {
    Vae vae = make({60, 100}, 20, rows, cols);
    vae.architecture.likelihood = parse_likelihood("gaussian:0.2");
    const at::Tensor z = at::randn({3, 23, 20}, rng_);
    const at::Tensor drawn = vae.decoder.forward(z.select(1, 0)) +
                             0.2 * at::randn({3, vae.architecture.num_pixels()}, rng_);
    const testing::GuardedMemory guard;  // whose memory oneDNN's gelu does not take
    const at::Tensor images = drawn.clone();
    const Evaluation found = pack(vae).evaluate(z.clone(), images),
                     truth = reference(vae, images, z);
    const at::Tensor scale = (truth.log_density.abs() + 1000.0);
    EXPECT_LT(((found.log_density - truth.log_density) / scale).abs().max().item<double>(), 2e-6);
    EXPECT_LT((found.log_density - truth.log_density).select(1, 0).abs().max().item<double>(),
              1e-3);
    EXPECT_TRUE(grad_is_right(kernel(), found, truth)) << grad_error(found, truth);
  }
}

TEST_P(EveryKernel, AgreesOnContinuousBernoulliPixels) {
  for (const double gain : {0.1, 1.0, 20.0}) {  // logits near 0, on both sides of 0.7, and far
    Vae vae = make({60, 100}, 20, 7, 5);
    vae.architecture.likelihood = parse_likelihood("continuous-bernoulli");
    vae.decoder.layers.back().weight = gain * vae.decoder.layers.back().weight;
    const testing::GuardedMemory guard;
    const at::Tensor images = at::rand({3, 35}, rng_), z = at::randn({3, 23, 20}, rng_);
    const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
    EXPECT_LT(value_error(found, truth), 1e-4 * std::max(1.0, gain));
    EXPECT_TRUE(grad_is_right(kernel(), found, truth)) << gain << ": " << grad_error(found, truth);
  }
}

TEST_P(EveryKernel, AgreesAtOddSizes) {
  const testing::GuardedMemory guard;
  struct Size {
    std::vector<int64_t> hidden;
    int64_t latent, rows, cols, images, particles;
  };
  const std::vector<Size> sizes = {{{13, 9}, 3, 7, 5, 3, 7},        {{}, 4, 5, 3, 2, 5},
                                   {{17}, 1, 1, 1, 1, 1},           {{1, 2, 3, 4}, 2, 11, 11, 7, 1},
                                   {{8, 16}, 8, 4, 4, 1, 16},       {{31}, 50, 1, 119, 5, 11},
                                   {{40, 3, 25}, 9, 1, 121, 1, 49}, {{5}, 6, 13, 19, 3, 64}};
  for (const Size& size : sizes) {
    const Vae vae = make(size.hidden, size.latent, size.rows, size.cols);
    const at::Tensor images = make_images(size.images, vae, rng_);
    const at::Tensor z = 1.5 * at::randn({size.images, size.particles, size.latent}, rng_);
    const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
    EXPECT_LT(value_error(found, truth), 1e-4) << size.rows << " x " << size.cols;
    EXPECT_TRUE(grad_is_right(kernel(), found, truth))
        << size.rows << " x " << size.cols << ": " << grad_error(found, truth);
  }
}

TEST_P(EveryKernel, AParticlesResultDoesNotDependOnItsPlace) {
  const Vae vae = make({21, 30}, 6, 9, 8);
  const FusedDecoder decoder = pack(vae);
  const at::Tensor images = make_images(4, vae, rng_), z = at::randn({4, 29, 6}, rng_);
  const Evaluation all = decoder.evaluate(z, images);
  EXPECT_TRUE(at::equal(decoder.log_density(z, images), all.log_density));
  for (int64_t p = 0; p < 4; ++p)
    for (const int64_t k : {0, 1, 15, 16, 28}) {
      const at::Tensor image = images.slice(0, p, p + 1).contiguous();
      const auto alone = [&](int64_t end) {
        const at::Tensor some = z.slice(0, p, p + 1).slice(1, k, end).contiguous();
        return decoder.evaluate(some, image);
      };
      for (const int64_t end : {k + 1, int64_t{29}}) {
        const Evaluation found = alone(end);
        EXPECT_EQ(found.log_density[0][0].item<double>(), all.log_density[p][k].item<double>());
        EXPECT_TRUE(at::equal(found.grad[0][0], all.grad[p][k])) << p << " " << k << " " << end;
      }
    }
}

TEST_P(EveryKernel, SaturatedLogits) {
  Vae vae = make({20}, 4, 6, 6);
  auto& last = vae.decoder.layers.back();
  last.bias = at::where(at::rand({36}, rng_) < 0.5, at::full({36}, 1e4F), at::full({36}, -1e4F));
  const at::Tensor certain = (last.bias > 0).to(at::kFloat).unsqueeze(0);
  const at::Tensor images = at::cat({certain, 1 - certain, 0.3 * certain});
  const at::Tensor z = at::randn({3, 9, 4}, rng_);
  const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
  const at::Tensor scale = truth.log_density.abs().clamp_min(1);
  EXPECT_LT(((found.log_density - truth.log_density).abs() / scale).max().item<double>(), 1e-6);
  EXPECT_LT(value_error({found.log_density[0], {}}, {truth.log_density[0], {}}), 1e-5);
  EXPECT_TRUE(grad_is_right(kernel(), found, truth)) << grad_error(found, truth);
}

// Rounded forces are as exact in a coordinate that changes little as in one that changes much.
TEST_P(EveryKernel, UnevenInputs) {
  Vae vae = make({}, 12, 9, 9);
  Layer& only = vae.decoder.layers.front();
  only.weight = only.weight * at::logspace(-3, 0.5, 12);
  const at::Tensor images = make_images(3, vae, rng_), z = at::randn({3, 30, 12}, rng_);
  const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
  EXPECT_LT(value_error(found, truth), 1e-4);
  const at::Tensor force = truth.grad + z;  // without the prior's
  const at::Tensor error = (found.grad.to(at::kDouble) - truth.grad).flatten(0, 1).norm(2, {0}) /
                           force.flatten(0, 1).norm(2, {0});
  EXPECT_LT(error.max().item<double>(), kernel().in_fixed_point ? 0.05 : 1e-3) << error;
}

// Every input at its largest and every weight of one sign: no sum of a kernel's may overflow.
TEST_P(EveryKernel, LargestSums) {
  for (const int64_t units : {8, 400, 3000}) {
    Vae vae = make({units}, 3, 6, 6);
    Layer &first = vae.decoder.layers.front(), &last = vae.decoder.layers.back();
    first.weight = 1e-3 * first.weight;
    first.bias = at::full({units}, 2.0F);
    const at::Tensor logit =
        9 * at::where(at::arange(36) % 2 == 0, at::ones({36}), -at::ones({36}));
    last.weight = (logit / static_cast<double>(units)).unsqueeze(1).repeat({1, units});
    const at::Tensor images = make_images(2, vae, rng_), z = at::randn({2, 10, 3}, rng_);
    const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
    EXPECT_LT(value_error(found, truth), 1e-2) << units;
  }
}

// Every slope at its largest and every weight of one sign: no sum on the way back may overflow.
TEST_P(EveryKernel, LargestForces) {
  for (const float sign : {1.0F, -1.0F}) {
    Vae vae = make({}, 3, 16, 16);
    Layer& only = vae.decoder.layers.front();
    only.weight = at::full_like(only.weight, 0.25);
    only.bias = at::full_like(only.bias, sign * -20);
    const at::Tensor images = at::full({2, 256}, sign > 0 ? 1.0F : 0.0F);
    const at::Tensor z = at::randn({2, 10, 3}, rng_);
    const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
    EXPECT_LT(grad_error(found, truth), 0.01) << sign;
  }
}

// exp(-|0|) = 1: the largest factors that the kernels multiply before they take a logarithm.
TEST_P(EveryKernel, UndecidedPixels) {
  Vae vae = make({6}, 3, 1, 500);
  for (auto* part : {&vae.decoder.layers.back().weight, &vae.decoder.layers.back().bias})
    *part = at::zeros_like(*part);
  const at::Tensor images = make_images(2, vae, rng_), z = at::randn({2, 10, 3}, rng_);
  const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
  EXPECT_LT(value_error(found, truth), 1e-4);
  EXPECT_TRUE(at::equal(found.grad, -z));
}

TEST_P(EveryKernel, NonFiniteParticlesShowAndHarmNoOther) {
  const Vae vae = make({20, 11}, 4, 6, 7);
  const FusedDecoder decoder = pack(vae);
  const at::Tensor images = make_images(2, vae, rng_), z = at::randn({2, 20, 4}, rng_);
  at::Tensor broken = z.clone();
  broken[0][0][1] = kNan;
  broken[0][7][3] = kInf;
  broken[0][8][0] = -kInf;
  broken[1][19][2] = 3e38F;
  broken[1][3][2] = -3e38F;
  const Evaluation clean = decoder.evaluate(z, images), found = decoder.evaluate(broken, images);
  const at::Tensor changed = (broken != z).any(-1);
  EXPECT_EQ(changed.sum().item<int64_t>(), 5);
  EXPECT_FALSE(found.log_density.isfinite().logical_and(changed).any().item<bool>());
  EXPECT_TRUE(
      at::equal(at::where(changed, clean.log_density, found.log_density), clean.log_density));
  EXPECT_TRUE(at::equal(at::where(changed.unsqueeze(-1), clean.grad, found.grad), clean.grad));
  // NaN where autograd has NaN; what autograd has finite is right or not finite.
  const Evaluation truth = reference(vae, images, broken);
  EXPECT_TRUE(found.log_density.isfinite()
                  .logical_not()
                  .logical_or((found.log_density - truth.log_density).abs() < 1e-3)
                  .all()
                  .item<bool>());
  EXPECT_TRUE(found.grad[0][0].isnan().all().item<bool>());
  const at::Tensor lost = truth.grad.isnan() & found.grad.isfinite();
  EXPECT_FALSE(lost.any().item<bool>());
}

TEST_P(EveryKernel, NonFiniteLogitsShow) {
  for (const float bad : {kNan, kInf, -kInf}) {
    Vae vae = make({6}, 3, 5, 5);
    vae.decoder.layers.back().bias[17] = bad;
    const at::Tensor images = make_images(2, vae, rng_).clamp(0.1, 0.9);
    const at::Tensor z = at::randn({2, 3, 3}, rng_);
    const Evaluation found = pack(vae).evaluate(z, images), truth = reference(vae, images, z);
    EXPECT_FALSE(found.log_density.isfinite().any().item<bool>()) << bad;
    EXPECT_FALSE(truth.log_density.isfinite().any().item<bool>()) << bad;
    EXPECT_TRUE(at::equal(found.grad.isfinite(), truth.grad.isfinite())) << bad;
  }
}

TEST(FusedDecoder, AgreesOnATrainedNetwork) {
  const Vae vae =
      read_checkpoint(std::string(CRAIS_SOURCE) + "/weights/vae50-mnist.safetensors").vae;
  at::Generator rng = make_generator(4);
  const Simulated model = simulate(vae, 40, rng);
  const at::Tensor near = model.latents.unsqueeze(1) + 0.1 * at::randn({40, 8, 50}, rng);
  const at::Tensor z = at::cat({near, at::randn({40, 8, 50}, rng)}, 1);
  const Evaluation truth = reference(vae, model.images, z);
  EXPECT_GT(truth.log_density.abs().max().item<double>(), 600);
  for (const FusedKernel& kernel : all_kernels()) {
    const Evaluation found = FusedDecoder(decoder_network(vae), kernel).evaluate(z, model.images);
    EXPECT_LT(value_error(found, truth), 1e-3) << kernel.name;
    const at::Tensor error = (found.log_density - truth.log_density).abs();
    EXPECT_LT(error.mean().item<double>(), 1e-4) << kernel.name;
    EXPECT_TRUE(grad_is_right(kernel, found, truth)) << kernel.name << grad_error(found, truth);
    const at::Tensor off = (found.grad.to(at::kDouble) - truth.grad).norm(2, {-1});
    EXPECT_LT((off / truth.grad.norm(2, {-1})).mean().item<double>(), 0.02) << kernel.name;
  }
}

// Sums of integers could overflow in a layer that is larger: it has exact forces alone.
TEST(FusedDecoder, IntegersAreForLayersThatFit) {
  for (const int64_t above : {0, 1}) {
    const DecoderNetwork network =
        decoder_network(make_case("tanh", {kWidestFixedPoint + above}, 1, 1, 1));
    for (const FusedKernel& kernel : all_kernels()) {
      const bool fits = above == 0 || !kernel.in_fixed_point;
      EXPECT_EQ(FusedDecoder::supports(network, kernel), fits) << kernel.name;
      if (!fits) {
        EXPECT_THROW(FusedDecoder(network, kernel), c10::Error);
      }
    }
    const FusedKernel& fastest = *available_kernels().front();
    if (chosen_evaluator() == fastest.name) {
      EXPECT_EQ(make_fused_decoder(network)->cheap() != nullptr,
                above == 0 && fastest.in_fixed_point);
    }
  }
}

TEST(FusedDecoder, EnvironmentChoosesTheKernel) {
  const Vae vae = make_case("tanh", {6}, 3, 5, 5);
  for (const FusedKernel* kernel : available_kernels()) {
    const std::string name = kernel->name;
    const testing::ScopedVariable chosen("CRAIS_EVALUATOR", name);
    const DecoderPosterior exact(vae, at::zeros({1, 25}));
    const bool is_cheap = exact.traits().forces_pay;
    const auto cheap = exact.with_forces(at::kBFloat16);
    const auto& used = is_cheap ? dynamic_cast<const DecoderPosterior&>(*cheap) : exact;
    EXPECT_EQ(used.evaluator(), name);
    EXPECT_EQ(exact.evaluator(), is_cheap ? fastest_exact().name : name);
  }
  const testing::ScopedVariable aten("CRAIS_EVALUATOR", "aten");
  EXPECT_EQ(DecoderPosterior(vae, at::zeros({1, 25})).evaluator(), "aten");
  const testing::ScopedVariable unknown("CRAIS_EVALUATOR", "fused-abacus");
  expect_error(ErrorKind::kArgument, {"fused-abacus", "fused-portable", "aten"},
               [&] { make_fused_decoder(decoder_network(vae)); });
}

}  // namespace
}  // namespace crais
