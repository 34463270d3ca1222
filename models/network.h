/// @file
/// A network: a chain of dense and convolutional layers.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/activation.h"
#include "models/likelihood.h"

namespace crais {

/// A convolution of images in one group, or a transposed one, as torch.nn.Conv2d and
/// ConvTranspose2d. The output padding follows from the size of the output.
struct Convolution {
  struct Shape {
    int64_t channels = 0, rows = 0, columns = 0;
    int64_t places() const { return rows * columns; }
    int64_t units() const { return channels * places(); }
    bool operator==(const Shape&) const = default;
  };
  using Pair = std::array<int64_t, 2>;  // along rows, along columns

  bool transposed = false;
  Shape input, output;
  Pair kernel = {1, 1}, stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};

  /// False if no convolution of these sizes turns such an input into such an output.
  bool is_possible() const;
};

/// A linear map of images that treats all channels alike: each place of the output is a weighted
/// sum of a few places of the input. For interpolation, pooling, padding and cropping.
struct Interpolation {
  Convolution::Shape input, output;  // with equal numbers of channels
  at::Tensor places;                 // int64 [places of the output, taps]: places of the input
};

/// An earlier layer whose units are added to a layer's sums before normalisation.
struct Skip {
  int64_t from = 0;                // index of the earlier layer
  bool before_activation = false;  // adds its sums, without normalisation and activation
  auto operator<=>(const Skip&) const = default;
};

/// Normalisation of groups of consecutive units, all of one size: each unit minus the mean of its
/// group, divided by the group's standard deviation, then scaled and shifted, as in
/// torch.nn.GroupNorm and LayerNorm.
struct Normalisation {
  int64_t groups = 1;
  double eps = 1e-5;        // added to a variance
  at::Tensor scale, shift;  // [units]
};

/// A linear map with a bias, then optionally a residual connection and a normalisation, then an
/// activation.
struct Layer {
  /// Dense: [out, in]. Convolution, as in PyTorch: [out, in, *kernel] channels, or [in, out,
  /// *kernel] if transposed. Interpolation: [places of the output, taps].
  at::Tensor weight;
  at::Tensor bias;  // [out], for each unit or each channel
  std::optional<Convolution> convolution = {};
  Activation activation = Activation::kIdentity;
  std::optional<Skip> skip = {};
  std::optional<Normalisation> normalisation = {};
  std::optional<Interpolation> interpolation = {};  // in place of a convolution

  /// The input image of a convolution or an interpolation; null for a dense layer.
  const Convolution::Shape* input_image() const;
  const Convolution::Shape* output_image() const;

  int64_t inputs() const;   // units
  int64_t outputs() const;  // units
  int64_t multiplications() const;
};

/// Layers from inputs to outputs. Units of an image are in PyTorch's order, [channel][row][column].
struct Network {
  std::vector<Layer> layers;

  /// [N, inputs] -> [N, outputs]; dense layers take [..., inputs]. Differentiable.
  at::Tensor forward(at::Tensor x) const;
  bool empty() const { return layers.empty(); }

  /// A copy of the network with every tensor moved.
  Network to(at::Device device, at::ScalarType dtype) const;
};

/// A chain of dense layers with `activation` between them and none after the last.
Network mlp(std::vector<Layer> layers, Activation activation);

/// A network from latents under N(0, I) to the logits of Bernoulli pixels or the means of normal
/// ones.
struct DecoderNetwork : Network {
  Likelihood likelihood;
};

}  // namespace crais
