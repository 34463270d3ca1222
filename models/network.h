/// @file
/// A network as a chain of layers, dense or convolutional.
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
/// ConvTranspose2d are: the output's size says what padding an output takes.
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

  /// False where no convolution of these sizes makes such an output of such an input.
  bool is_possible() const;
};

/// A linear map of images that does the same with each channel: a place of the output is a sum of a
/// few places of the input, with weights of its own. Interpolation, pools, pads and crops.
struct Interpolation {
  Convolution::Shape input, output;  // of as many channels
  at::Tensor places;                 // int64 [places of the output, taps]: of the input
};

/// An earlier layer whose units are added to a layer's sums, before these are normalised.
struct Skip {
  int64_t from = 0;                // its index
  bool before_activation = false;  // its own sums, not what normalisation and activation make of it
  auto operator<=>(const Skip&) const = default;
};

/// Of groups of equally many consecutive units: each unit less the mean of its group, divided by
/// the group's standard deviation, then scaled and shifted, as torch.nn.GroupNorm and LayerNorm do.
struct Normalisation {
  int64_t groups = 1;
  double eps = 1e-5;        // added to a variance
  at::Tensor scale, shift;  // [units]
};

/// A linear map with a bias, perhaps a residual connection, perhaps a normalisation, then an
/// activation.
struct Layer {
  /// Dense [out, in]; of a convolution as PyTorch has it: [out, in, *kernel] channels, or
  /// [in, out, *kernel] where it is transposed. Of an interpolation [places of the output, taps].
  at::Tensor weight;
  at::Tensor bias;  // [out]: of units, or of channels
  std::optional<Convolution> convolution;
  Activation activation = Activation::kIdentity;
  std::optional<Skip> skip = {};
  std::optional<Normalisation> normalisation = {};
  std::optional<Interpolation> interpolation = {};  // in place of a convolution

  /// Of a convolution or an interpolation; null for a dense layer.
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

  /// A copy with every tensor moved.
  Network to(at::Device device, at::ScalarType dtype) const;
};

/// Dense layers, whose activation is set: `activation` between them, none after the last.
Network mlp(std::vector<Layer> layers, Activation activation);

/// From latents under N(0, I) to the logits of Bernoulli pixels or the means of normal ones.
struct DecoderNetwork : Network {
  Likelihood likelihood;
};

}  // namespace crais
