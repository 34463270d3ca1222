// Convolutional decoders against PyTorch's own convolutions in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "core/rng.h"
#include "kernels/every_kernel.h"
#include "kernels/fused_decoder.h"
#include "models/network.h"
#include "support/guarded_memory.h"

namespace crais {
namespace {

using Shape = Convolution::Shape;

/// Weights and biases as uneven as a trained network's.
class Builder {
 public:
  explicit Builder(Activation activation) : activation_(activation) {}

  Builder& dense(int64_t inputs, int64_t outputs) {
    add({outputs, inputs}, inputs, outputs, {});
    return *this;
  }
  Builder& convolution(const Convolution& c) {
    EXPECT_TRUE(c.is_possible());
    const auto [in, out] = std::pair(c.input.channels, c.output.channels);
    const int64_t taps = c.kernel[0] * c.kernel[1];
    const int64_t seen =
        c.transposed ? std::max<int64_t>(1, taps / (c.stride[0] * c.stride[1])) : taps;
    add({c.transposed ? in : out, c.transposed ? out : in, c.kernel[0], c.kernel[1]}, in * seen,
        out, c);
    return *this;
  }
  /// Adds an interpolation whose outputs read `taps` places each.
  Builder& interpolation(Shape input, Shape output, int64_t taps) {
    add({output.places(), taps}, taps, output.channels, {});
    network_.layers.back().interpolation = Interpolation{
        input, output, at::randint(input.places(), {output.places(), taps}, rng_, at::kLong)};
    return *this;
  }
  Builder& skip(int64_t from, bool before_activation) {
    network_.layers.back().skip = Skip{from, before_activation};
    return *this;
  }
  Builder& normalise(int64_t groups) {
    const int64_t units = network_.layers.back().outputs();
    network_.layers.back().normalisation = Normalisation{
        groups, 1e-3, 1 + 0.3 * at::randn({units}, rng_), 0.2 * at::randn({units}, rng_)};
    return *this;
  }
  DecoderNetwork done(const Likelihood& likelihood = {}) {
    network_.likelihood = likelihood;
    network_.layers.back().activation = Activation::kIdentity;
    return network_;
  }

 private:
  void add(const std::vector<int64_t>& shape, int64_t fan_in, int64_t biases,
           const std::optional<Convolution>& convolution) {
    const double sd = 1.2 / std::sqrt(static_cast<double>(fan_in));
    network_.layers.push_back({sd * at::randn(shape, rng_), 0.3 * at::randn({biases}, rng_) - 0.1,
                               convolution, activation_});
  }

  Activation activation_;
  DecoderNetwork network_;
  at::Generator rng_ = make_generator(1);
};

Convolution convolution(Shape input, Shape output, int64_t kernel, int64_t stride = 1,
                        int64_t padding = 0) {
  return {false, input, output, {kernel, kernel}, {stride, stride}, {padding, padding}};
}

Convolution transposed(Shape input, Shape output, int64_t kernel, int64_t stride = 1,
                       int64_t padding = 0) {
  return {true, input, output, {kernel, kernel}, {stride, stride}, {padding, padding}};
}

/// A VAE of MNIST as tutorials have it.
DecoderNetwork dense_then_transposed(Activation activation) {
  return Builder(activation)
      .dense(6, 8 * 7 * 7)
      .convolution(transposed({8, 7, 7}, {12, 14, 14}, 4, 2, 1))
      .convolution(transposed({12, 14, 14}, {1, 28, 28}, 4, 2, 1))
      .done();
}

/// A generator of colour pixels, from latents that are an image of one pixel.
DecoderNetwork transposed_alone(Activation activation) {
  return Builder(activation)
      .convolution(transposed({10, 1, 1}, {16, 4, 4}, 4))
      .convolution(transposed({16, 4, 4}, {9, 8, 8}, 3, 2, 1))  // an output padding of 1
      .convolution(transposed({9, 8, 8}, {3, 16, 16}, 4, 2, 1))
      .done();
}

/// Strides, dilations, kernels and images that are not square, and dense layers behind.
DecoderNetwork odd_sizes(Activation activation) {
  return Builder(activation)
      .convolution({false, {3, 4, 5}, {5, 6, 3}, {1, 3}, {1, 2}, {1, 1}, {1, 1}})
      .convolution({true, {5, 6, 3}, {4, 13, 9}, {3, 2}, {2, 2}, {0, 0}, {1, 3}})
      .convolution({false, {4, 13, 9}, {8, 5, 6}, {3, 3}, {2, 2}, {0, 2}, {2, 1}})
      .dense(8 * 5 * 6, 30)
      .dense(30, 37)
      .done();
}

/// A kernel that is larger than its image: what a place sees begins and ends at its borders.
DecoderNetwork large_kernels(Activation activation) {
  return Builder(activation)
      .dense(4, 2 * 3 * 3)
      .convolution(convolution({2, 3, 3}, {8, 5, 5}, 5, 1, 3))
      .convolution(convolution({8, 5, 5}, {2, 5, 5}, 7, 1, 3))
      .done();
}

/// Residual connections from an activation's inputs and from its outputs, where those are kept; of
/// images and of dense layers.
DecoderNetwork residual(Activation activation) {
  const Convolution same = convolution({8, 5, 4}, {8, 5, 4}, 3, 1, 1);
  const bool outputs_are_not_kept = !activation.slope_is_of_output();
  return Builder(activation)
      .dense(6, 8 * 5 * 4)
      .convolution(same)
      .convolution(same)
      .skip(0, /*before_activation=*/true)
      .convolution(same)
      .convolution(same)
      .skip(2, outputs_are_not_kept)
      .convolution(convolution({8, 5, 4}, {3, 3, 2}, 3))
      .dense(18, 11)
      .dense(11, 11)
      .dense(11, 11)
      .skip(6, outputs_are_not_kept)
      .dense(11, 23)
      .done();
}

/// Normalised sums, some of which a residual connection adds to others before or after: groups of
/// channels, single ones and whole images, and of dense layers in both orders of their units.
DecoderNetwork normalised(Activation activation) {
  const Convolution same = convolution({8, 5, 4}, {8, 5, 4}, 3, 1, 1);
  return Builder(activation)
      .dense(6, 8 * 5 * 4)
      .normalise(4)
      .convolution(same)
      .normalise(8)
      .convolution(same)
      .skip(0, /*before_activation=*/true)
      .normalise(2)
      .convolution(convolution({8, 5, 4}, {3, 3, 2}, 3))
      .normalise(1)
      .dense(18, 12)
      .normalise(3)
      .dense(12, 23)
      .done();
}

/// Interpolations of latents, between convolutions, after and before dense layers, and at the end.
DecoderNetwork interpolated(Activation activation) {
  return Builder(activation)
      .interpolation({2, 3, 1}, {2, 2, 2}, 3)
      .dense(8, 8 * 3 * 2)
      .interpolation({8, 3, 2}, {8, 5, 4}, 4)
      .convolution(convolution({8, 5, 4}, {5, 3, 2}, 3))
      .interpolation({5, 3, 2}, {5, 2, 3}, 1)
      .dense(30, 18)
      .interpolation({2, 3, 3}, {2, 7, 5}, 2)
      .done();
}

using Make = DecoderNetwork (*)(Activation);
const std::vector<std::pair<std::string, Make>> kNetworks = {
    {"DenseThenTransposed", dense_then_transposed},
    {"TransposedAlone", transposed_alone},
    {"OddSizes", odd_sizes},
    {"LargeKernels", large_kernels},
    {"Residual", residual},
    {"Normalised", normalised},
    {"Interpolated", interpolated}};

struct Data {
  at::Tensor z, images;
};

Data make_data(const DecoderNetwork& network, int64_t problems, int64_t particles) {
  at::Generator rng = make_generator(3);
  const int64_t latent = network.layers.front().inputs(), pixels = network.layers.back().outputs();
  return {at::randn({problems, particles, latent}, rng),
          (1.6 * at::rand({problems, pixels}, rng) - 0.3).clamp(0, 1)};
}

using Case = std::tuple<std::string, std::pair<std::string, Make>>;

class EveryConvolution : public ::testing::TestWithParam<Case> {
 protected:
  const FusedKernel& kernel() const { return kernel_of(std::get<0>(GetParam())); }
  DecoderNetwork make(Activation activation = Activation::kElu) const {
    return std::get<1>(GetParam()).second(activation);
  }
};

INSTANTIATE_TEST_SUITE_P(All, EveryConvolution,
                         ::testing::Combine(::testing::ValuesIn(names_of_kernels()),
                                            ::testing::ValuesIn(kNetworks)),
                         [](const auto& instance) {
                           return testing::name_of_test(std::get<0>(instance.param) + "_" +
                                                        std::get<1>(instance.param).first);
                         });

/// With autograd in float64; and the value alone is the same.
void expect_right(const DecoderNetwork& network, const FusedKernel& kernel, int64_t problems,
                  int64_t particles) {
  const auto [z, images] = make_data(network, problems, particles);
  const FusedDecoder decoder(network, kernel);
  const Evaluation truth = reference(network, images, z), found = decoder.evaluate(z, images);
  EXPECT_LT(value_error(found, truth), 2e-6 * truth.log_density.abs().max().item<double>());
  EXPECT_LT(grad_error(found, truth), kernel.in_fixed_point ? 0.1 : 2e-5);
  EXPECT_TRUE(at::equal(decoder.log_density(z, images), found.log_density));
}

TEST_P(EveryConvolution, AgreesWithAutogradInDoublePrecision) {
  const testing::GuardedMemory guard;
  for (const char* activation : {"elu", "tanh", "relu", "leaky-relu:0.2", "silu", "gelu", "mish"})
    expect_right(make(parse_activation(activation)), kernel(), 3, 23);
}

TEST_P(EveryConvolution, TakesMeansOfNormalPixels) {
  for (const Activation::Kind mean :
       {Activation::kIdentity, Activation::kSigmoid, Activation::kTanh}) {
    DecoderNetwork network = make();
    network.likelihood = parse_likelihood("gaussian:0.3");
    network.layers.back().activation = mean;
    expect_right(network, kernel(), 2, 9);
    if (kernel().decode != nullptr) {
      const at::Tensor z = make_data(network, 1, 9).z[0];
      const FusedDecoder decoder(network, kernel());
      EXPECT_LT((decoder.decode(z) - network.forward(z)).abs().max().item<double>(), 1e-5);
    }
    network.likelihood = {};
    EXPECT_EQ(FusedDecoder::supports(network, kernel()), mean == Activation::kIdentity);
  }
}

TEST_P(EveryConvolution, TakesAnActivationForEachLayer) {
  DecoderNetwork network = make();
  const std::vector<Activation> each = {Activation::kSilu,
                                        Activation::kIdentity,
                                        {Activation::kLeakyRelu, 0.3},
                                        Activation::kSigmoid};
  for (size_t i = 0; i + 1 < network.layers.size(); ++i)
    network.layers[i].activation = each.at(i % each.size());
  expect_right(network, kernel(), 2, 30);
}

TEST_P(EveryConvolution, IsAFunctionOfTheParticle) {
  const DecoderNetwork network = make();
  const auto [z, images] = make_data(network, 2, 60);
  const FusedDecoder decoder(network, kernel());
  const Evaluation all = decoder.evaluate(z, images);
  for (const int64_t k : {0, 7, 31, 59}) {
    const Evaluation one = decoder.evaluate(z.slice(1, k, k + 1).contiguous(), images);
    EXPECT_TRUE(at::equal(one.log_density, all.log_density.slice(1, k, k + 1))) << k;
    EXPECT_TRUE(at::equal(one.grad, all.grad.slice(1, k, k + 1))) << k;
  }
}

TEST_P(EveryConvolution, DecodesAsTheNetworkDoes) {
  const DecoderNetwork network = make();
  const at::Tensor z = make_data(network, 1, 31).z[0], wanted = network.forward(z);
  const testing::GuardedMemory guard;
  const FusedDecoder decoder(network, kernel());
  if (kernel().in_fixed_point) {
    EXPECT_THROW(decoder.decode(z), c10::Error);
    return;
  }
  const at::Tensor found = decoder.decode(z);
  EXPECT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LT((found - wanted).abs().max().item<double>(),
            1e-5 * (1 + wanted.abs().max().item<double>()));
}

TEST_P(EveryConvolution, NanStaysWithItsParticle) {
  const DecoderNetwork network = make();
  auto [z, images] = make_data(network, 2, 30);
  const FusedDecoder decoder(network, kernel());
  const Evaluation before = decoder.evaluate(z, images);
  z[1][4].fill_(std::numeric_limits<float>::quiet_NaN());
  const Evaluation after = decoder.evaluate(z, images);
  EXPECT_TRUE(std::isnan(after.log_density[1][4].item<double>()));
  at::Tensor others = at::ones({2, 30}, at::kBool);
  others[1][4] = false;
  EXPECT_TRUE(
      at::equal(after.log_density.masked_select(others), before.log_density.masked_select(others)));
  EXPECT_TRUE(at::equal(after.grad.index({others}), before.grad.index({others})));
}

TEST(Convolution, KnowsWhichSizesArePossible) {
  EXPECT_TRUE(convolution({1, 8, 8}, {1, 4, 4}, 4, 2, 1).is_possible());
  EXPECT_FALSE(convolution({1, 8, 8}, {1, 5, 4}, 4, 2, 1).is_possible());
  EXPECT_TRUE(transposed({1, 4, 4}, {1, 9, 8}, 4, 2, 1).is_possible());
  EXPECT_FALSE(transposed({1, 4, 4}, {1, 10, 8}, 4, 2, 1).is_possible());
  EXPECT_FALSE(convolution({1, 2, 2}, {1, 1, 1}, 4).is_possible());
}

/// A sum of bytes on the way back has as many terms as a place of the input has outputs.
TEST(FusedDecoder, BytesAreForConvolutionsThatFit) {
  for (const int64_t above : {0, 1}) {
    const DecoderNetwork network =
        Builder(Activation::kElu)
            .dense(2, 1)
            .convolution(convolution({1, 1, 1}, {kWidestFixedPoint + above, 1, 1}, 1))
            .done();
    for (const FusedKernel& kernel : all_kernels())
      EXPECT_EQ(FusedDecoder::supports(network, kernel), above == 0 || !kernel.in_fixed_point)
          << kernel.name;
  }
}

TEST(FusedDecoder, SupportsResidualConnectionsOfWhatIsKept) {
  const auto is_supported = [](const DecoderNetwork& network) {
    return FusedDecoder::supports(network, kPortableKernel);
  };
  const DecoderNetwork known = residual(Activation::kElu);
  EXPECT_TRUE(is_supported(known));
  DecoderNetwork network = known;
  network.layers[4].skip = Skip{0, true};  // a second one from there
  EXPECT_FALSE(is_supported(network));
  network = residual(Activation::kSilu);
  EXPECT_TRUE(is_supported(network));
  network.layers[4].skip = Skip{2, false};  // whose input alone is kept
  EXPECT_FALSE(is_supported(network));
  network = known;
  network.layers.pop_back();  // so that the last layer's sums are not in one place
  EXPECT_FALSE(is_supported(network));
  // As many units, but one layer's are in the order of an image.
  network = Builder(Activation::kElu)
                .dense(3, 24)
                .dense(24, 24)
                .skip(0, false)
                .convolution(convolution({4, 3, 2}, {8, 2, 1}, 2))
                .done();
  EXPECT_FALSE(is_supported(network));
  network.layers[1].skip.reset();
  EXPECT_TRUE(is_supported(network));
}

TEST(FusedDecoder, SupportsNormalisationsOfWholeChannels) {
  const auto is_supported = [](const DecoderNetwork& network) {
    return FusedDecoder::supports(network, kPortableKernel);
  };
  const DecoderNetwork known = normalised(Activation::kElu);
  EXPECT_TRUE(is_supported(known));
  DecoderNetwork network = known;
  network.layers[0].normalisation->groups = 16;  // half a channel each
  EXPECT_FALSE(is_supported(network));
  network = known;
  network.layers[2].skip = Skip{0, false};  // what is not kept
  EXPECT_FALSE(is_supported(network));
  network = known;
  network.layers.pop_back();  // so that it is the last layer's
  EXPECT_FALSE(is_supported(network));
}

/// Sums far from zero, whose spread is lost where their squares are averaged.
TEST(FusedDecoder, NormalisesSumsFarFromZero) {
  DecoderNetwork network = Builder(Activation::kTanh).dense(3, 96).normalise(2).dense(96, 9).done();
  network.layers[0].bias = at::full({96}, 30.0);
  network.layers[0].normalisation->eps = 1e-5;
  expect_right(network, fastest_exact(), 2, 19);
}

}  // namespace
}  // namespace crais
