#include "models/network.h"

#include <map>
#include <utility>

namespace crais {
namespace {

/// The size of a convolution's smaller image along one axis, from the size of the larger image.
int64_t size_of_smaller(int64_t larger, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation) {
  const int64_t room = larger + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// The padding [2] that a transposed convolution adds to the end of its output.
std::vector<int64_t> output_padding(const Convolution& c) {
  const auto along = [&](size_t axis, int64_t in, int64_t out) {
    return out - ((in - 1) * c.stride[axis] - 2 * c.padding[axis] +
                  c.dilation[axis] * (c.kernel[axis] - 1) + 1);
  };
  return {along(0, c.input.rows, c.output.rows), along(1, c.input.columns, c.output.columns)};
}

at::Tensor interpolate(const Layer& layer, const at::Tensor& x) {
  const Interpolation& map = *layer.interpolation;
  const at::Tensor from = x.view({-1, map.input.channels, map.input.places()});
  at::Tensor sum = layer.bias.view({-1, 1});
  for (int64_t tap = 0; tap < layer.weight.size(1); ++tap)
    sum = sum + from.index_select(2, map.places.select(1, tap)) * layer.weight.select(1, tap);
  return sum.flatten(1);
}

at::Tensor apply(const Layer& layer, const at::Tensor& x) {
  if (layer.interpolation) return interpolate(layer, x);
  if (!layer.convolution) return at::linear(x, layer.weight, layer.bias);
  const Convolution& c = *layer.convolution;
  const std::vector<int64_t> none = {0, 0};
  return at::convolution(x.view({-1, c.input.channels, c.input.rows, c.input.columns}),
                         layer.weight, layer.bias, c.stride, c.padding, c.dilation, c.transposed,
                         c.transposed ? output_padding(c) : none, 1)
      .flatten(1);
}

}  // namespace

bool Convolution::is_possible() const {
  const Shape &smaller = transposed ? input : output, &larger = transposed ? output : input;
  return smaller.rows ==
             size_of_smaller(larger.rows, kernel[0], stride[0], padding[0], dilation[0]) &&
         smaller.columns ==
             size_of_smaller(larger.columns, kernel[1], stride[1], padding[1], dilation[1]);
}

const Convolution::Shape* Layer::input_image() const {
  if (interpolation) return &interpolation->input;
  return convolution ? &convolution->input : nullptr;
}

const Convolution::Shape* Layer::output_image() const {
  if (interpolation) return &interpolation->output;
  return convolution ? &convolution->output : nullptr;
}

int64_t Layer::inputs() const {
  const Convolution::Shape* image = input_image();
  return image != nullptr ? image->units() : weight.size(1);
}

int64_t Layer::outputs() const {
  const Convolution::Shape* image = output_image();
  return image != nullptr ? image->units() : weight.size(0);
}

int64_t Layer::multiplications() const {
  if (interpolation) return weight.numel() * interpolation->output.channels;
  if (!convolution) return weight.numel();
  const Convolution& c = *convolution;
  return weight.numel() * (c.transposed ? c.input : c.output).places();
}

at::Tensor Network::forward(at::Tensor x) const {
  std::map<Skip, at::Tensor> kept;  // units that a later layer adds
  for (const Layer& layer : layers)
    if (layer.skip) kept.emplace(*layer.skip, at::Tensor());
  const auto keep = [&kept](const Skip& what, const at::Tensor& units) {
    if (const auto place = kept.find(what); place != kept.end()) place->second = units;
  };
  for (int64_t i = 0; const Layer& layer : layers) {
    at::Tensor sum = apply(layer, x);
    if (layer.skip) sum = sum + kept.at(*layer.skip);
    const auto& n = layer.normalisation;
    x = activate(layer.activation,
                 n ? at::group_norm(sum, n->groups, n->scale, n->shift, n->eps) : sum);
    keep({i, true}, sum);
    keep({i, false}, x);
    ++i;
  }
  return x;
}

Network Network::to(at::Device device, at::ScalarType dtype) const {
  Network moved = *this;
  for (Layer& layer : moved.layers) {
    layer.weight = layer.weight.to(device, dtype);
    layer.bias = layer.bias.to(device, dtype);
    if (layer.interpolation) layer.interpolation->places = layer.interpolation->places.to(device);
    if (!layer.normalisation) continue;
    layer.normalisation->scale = layer.normalisation->scale.to(device, dtype);
    layer.normalisation->shift = layer.normalisation->shift.to(device, dtype);
  }
  return moved;
}

Network mlp(std::vector<Layer> layers, Activation activation) {
  for (Layer& layer : layers) layer.activation = activation;
  if (!layers.empty()) layers.back().activation = Activation::kIdentity;
  return {std::move(layers)};
}

}  // namespace crais
