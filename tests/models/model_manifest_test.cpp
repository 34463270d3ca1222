// What the description of a decoder's layers may say. Each fault is one line.
#include "models/model_manifest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/function_model.h"
#include "support/expect_error.h"

namespace crais {
namespace {

using nlohmann::json;

/// tests/models/data/convolutional.safetensors, with its description altered.
std::string altered(const std::function<void(json& description, SafeTensors& arrays)>& alter) {
  SafeTensors content =
      read_safetensors(std::string(CRAIS_SOURCE) + "/tests/models/data/convolutional.safetensors");
  json description = json::parse(content.metadata.at("crais"));
  alter(description, content);
  content.metadata["crais"] = description.dump();
  return serialise_safetensors(content);
}

void put(SafeTensors& arrays, const std::string& name, const at::Tensor& tensor) {
  for (auto& [known, value] : arrays.tensors)
    if (known == name) value = tensor;
  if (!arrays.find(name)) arrays.tensors.emplace_back(name, tensor);
}

json& layer(json& description, size_t i) { return description["decoder"]["layers"][i]; }

TEST(ModelManifest, ReadsADecodersLayers) {
  const ModelManifest manifest =
      read_manifest(altered([](json& /*description*/, SafeTensors& /*arrays*/) {}), "file");
  EXPECT_EQ(manifest.model.high, 1.0);
  EXPECT_EQ(manifest.model.binarisation, "none");
  ASSERT_TRUE(manifest.decoder);
  const std::vector<Layer>& layers = manifest.decoder->layers;
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_FALSE(layers[0].convolution);
  EXPECT_TRUE(layers[1].convolution->transposed);
  EXPECT_FALSE(layers[2].convolution->transposed);
  EXPECT_EQ(layers[0].inputs(), 4);
  EXPECT_EQ(layers[1].inputs(), 8 * 2 * 3);
  EXPECT_EQ(layers[2].outputs(), 2 * 4 * 6);
  EXPECT_EQ(layers[0].activation, Activation::kElu);
  EXPECT_EQ(layers[1].activation, Activation::kElu);
  EXPECT_EQ(layers[2].activation, Activation::kIdentity);
}

TEST(ModelManifest, ReadsResidualConnections) {
  const auto read = [](const json& before) {
    return read_manifest(altered([&before](json& d, SafeTensors& arrays) {
                           json second = layer(d, 0);
                           second["skip"] = {{"from", 0}, {"before_activation", before}};
                           d["decoder"]["layers"] = {layer(d, 0), second, layer(d, 1), layer(d, 2)};
                           for (const char* kind : {".weight", ".bias"})
                             for (int i = 3; i > 1; --i)
                               put(arrays, "decoder." + std::to_string(i) + kind,
                                   *arrays.find("decoder." + std::to_string(i - 1) + kind));
                           put(arrays, "decoder.1.weight", at::eye(48));
                           put(arrays, "decoder.1.bias", at::zeros({48}));
                         }),
                         "file");
  };
  const DecoderNetwork decoder = *read(true).decoder;
  EXPECT_FALSE(decoder.layers[0].skip);
  EXPECT_EQ(decoder.layers[1].skip, (Skip{0, true}));
  EXPECT_EQ(*read(false).decoder->layers[1].skip, (Skip{0, false}));
  expect_error(ErrorKind::kData, {"\"before_activation\" is not true or false"},
               [&] { read("yes"); });
}

/// The last layer, of 2 channels at 4 x 6 places, as one that repeats a place of 8 x 2 x 3.
void interpolate(json& description, SafeTensors& arrays) {
  json& layers = description["decoder"]["layers"];
  layers.erase(2);
  layers[1] = {{"kind", "interpolation"},
               {"input", {2, 4, 6}},
               {"output", {2, 4, 6}},
               {"activation", nullptr}};
  put(arrays, "decoder.1.weight", at::full({24, 2}, 0.5));
  put(arrays, "decoder.1.bias", at::zeros({2}));
  put(arrays, "decoder.1.places", at::arange(48).view({24, 2}).remainder(24));
}

TEST(ModelManifest, ReadsInterpolations) {
  const ModelManifest manifest = read_manifest(altered(interpolate), "file");
  const Layer& last = manifest.decoder->layers.back();
  ASSERT_TRUE(last.interpolation);
  EXPECT_FALSE(last.convolution);
  EXPECT_EQ(last.outputs(), 48);
  EXPECT_EQ(last.multiplications(), 2 * 48);
  const at::Tensor z = at::ones({3, 4});
  const at::Tensor units = Network{{manifest.decoder->layers[0]}}.forward(z).view({3, 2, 12, 2});
  const at::Tensor means = units.mean(3).repeat({1, 1, 2});  // of neighbours, twice
  EXPECT_TRUE(at::allclose(manifest.decoder->forward(z).view({3, 2, 24}), means));
}

/// Adds a normalisation to the first layer, which has 48 units.
void normalise(json& description, SafeTensors& arrays, int64_t groups) {
  layer(description, 0)["normalisation"] = {{"groups", groups}, {"eps", 1e-3}};
  put(arrays, "decoder.0.scale", at::arange(48).to(at::kFloat));
  put(arrays, "decoder.0.shift", at::ones({48}));
}

TEST(ModelManifest, ReadsNormalisations) {
  const ModelManifest manifest =
      read_manifest(altered([](json& d, SafeTensors& s) { normalise(d, s, 4); }), "file");
  const std::vector<Layer>& layers = manifest.decoder->layers;
  ASSERT_TRUE(layers[0].normalisation);
  EXPECT_FALSE(layers[1].normalisation);
  EXPECT_EQ(layers[0].normalisation->groups, 4);
  EXPECT_EQ(layers[0].normalisation->eps, 1e-3);
  EXPECT_EQ(layers[0].normalisation->scale[5].item<float>(), 5);
  EXPECT_EQ(layers[0].normalisation->shift[5].item<float>(), 1);
}

TEST(ModelManifest, LayersMustComputeWhatTheModelDoes) {
  const auto manifest = [](double factor) {
    return read_manifest(altered([factor](json& /*description*/, SafeTensors& arrays) {
                           const at::Tensor* weight = arrays.find("decoder.1.weight");
                           put(arrays, "decoder.1.weight", factor * *weight);
                         }),
                         "file");
  };
  const DecoderNetwork decoder = *manifest(1.0).decoder;
  const auto model = decoder_model(
      manifest(1.0).model,
      {[&](const at::Tensor& z) { return decoder.forward(z); }, {}, decoder.likelihood},
      {at::kCPU, "test", "test"});
  check_values(manifest(1.0), *model, "file");
  expect_error(ErrorKind::kData, {"does not compute here what PyTorch did"},
               [&] { check_values(manifest(1.01), *model, "file"); });
}

using Alter = void (*)(json&, SafeTensors&);

void keep(json& /*description*/, SafeTensors& /*arrays*/) {}
void normalise_by_4(json& description, SafeTensors& arrays) { normalise(description, arrays, 4); }

json large_convolution(bool transposed, int64_t side, int64_t stride, int64_t padding) {
  return {{{"kind", "convolution"},
           {"transposed", transposed},
           {"input", {4, 1, 1}},
           {"output", {1, side, side}},
           {"stride", {stride, stride}},
           {"padding", {padding, padding}},
           {"dilation", {1, 1}}}};
}

/// What goes wrong after `alter`, with other values in the description (null: without them) and
/// other arrays.
struct Fault {
  const char* message;
  Alter alter;
  std::vector<std::pair<std::string, json>> values;
  std::vector<std::pair<std::string, at::Tensor>> arrays = {};
};

TEST(ModelManifest, RefusesLayersThatCannotBe) {
  const std::string layers = "/decoder/layers", first = layers + "/0", second = layers + "/1";
  const json skip0 = {{"from", 0}, {"before_activation", true}},
             skip1 = {{"from", 1}, {"before_activation", true}};
  const char* const no_convolution = "\"output\" is not what a convolution makes of its input";
  const char* const no_layer = "\"from\" is not an earlier layer with as many outputs";
  const char* const no_place = "\"decoder.1.places\" is not a place of the input";
  const std::vector<Fault> faults = {
      {"\"layers\" is not a list of 1 to 100", keep, {{layers, json::array()}}},
      {"\"layers\" is not a list of descriptions", keep, {{first, 3}}},
      {"\"kind\" is not dense, convolution or interpolation", keep, {{second + "/kind", "sparse"}}},
      {"unknown activation", keep, {{first + "/activation", "swish"}}},
      {"\"likelihood\" is not one that gives p(x)", keep, {{"/likelihood/name", "squared-error"}}},
      {"unknown likelihood", keep, {{"/decoder/likelihood", "laplace"}}},
      {"\"transposed\" is not true or false", keep, {{second + "/transposed", 1}}},
      {"tensor \"decoder.1.weight\" is Float [8, 3, 4, 4], expected Float [3, 8, any, any]",
       keep,
       {{second + "/transposed", false}}},
      {"\"input\" is not channels, rows and columns", keep, {{second + "/input", {8, 2, 3, 1}}}},
      {"\"input\" is not of the 48 units that come", keep, {{second + "/input", {8, 3, 3}}}},
      {no_convolution, keep, {{second + "/output", {3, 4, 8}}}},
      {no_convolution, keep, {{second + "/padding", {60'000, 1}}}},
      {"\"stride\" is not a whole number in 1..", keep, {{second + "/stride", {0, 2}}}},
      {"\"dilation\" is not a list of 2 whole numbers", keep, {{second + "/dilation", 1}}},
      {"\"padding\" is missing", keep, {{second + "/padding", nullptr}}},
      {"\"layers\" is not a decoder with 48 outputs", keep, {{layers + "/2", nullptr}}},
      {"tensor \"decoder.0.weight\" is Double [48, 4], expected Float [any, 4]",
       keep,
       {},
       {{"decoder.0.weight", at::ones({48, 4}, at::kDouble)}}},
      {"tensor \"decoder.2.bias\" holds NaN or infinite values",
       keep,
       {},
       {{"decoder.2.bias", at::full({2}, INFINITY)}}},
      {"tensor \"decoder.0.weight\" is Float [48, 5], expected Float [any, 4]",
       keep,
       {},
       {{"decoder.0.weight", at::ones({48, 5})}}},
      {no_layer, keep, {{second + "/skip", skip0}}},
      {no_layer, keep, {{second + "/skip", skip1}}},
      {"\"skip\" is not described", keep, {{second + "/skip", 0}}},
      {"\"output\" is not of as many channels as the input",
       interpolate,
       {{second + "/input", {3, 4, 4}}}},
      {"\"input\" is not of the 48 units that come", interpolate, {{second + "/input", {2, 5, 6}}}},
      {"tensor \"decoder.1.weight\" is Float [24, 2], expected Float [20, any]",
       interpolate,
       {{second + "/output", {2, 4, 5}}}},
      {no_place, interpolate, {}, {{"decoder.1.places", at::full({24, 2}, 24, at::kLong)}}},
      {no_place, interpolate, {}, {{"decoder.1.places", at::full({24, 2}, -1, at::kLong)}}},
      {"tensor \"decoder.1.places\" is Float [24, 2], expected Long [24, 2]",
       interpolate,
       {},
       {{"decoder.1.places", at::zeros({24, 2})}}},
      {"\"output\" is not an image of at most",
       interpolate,
       {{first, {{"kind", "interpolation"}, {"input", {4, 1, 1}}, {"output", {4, 1000, 1000}}}}},
       {{"decoder.0.weight", at::ones({1'000'000, 1})}, {"decoder.0.bias", at::ones({4})}}},
      {"\"normalisation\" is not described", keep, {{first + "/normalisation", true}}},
      {"\"groups\" is not a divisor of 48 units",
       normalise_by_4,
       {{first + "/normalisation/groups", 5}}},
      {"\"groups\" is not a whole number in 1..48",
       normalise_by_4,
       {{first + "/normalisation/groups", 0}}},
      {"\"eps\" is not a number of at least 0",
       normalise_by_4,
       {{first + "/normalisation/eps", -1e-3}}},
      {"tensor \"decoder.0.shift\" is Long [48], expected Float [48]",
       normalise_by_4,
       {},
       {{"decoder.0.shift", at::ones({48}, at::kLong)}}},
      {"tensor \"decoder.0.scale\" is Float [8], expected Float [48]",
       normalise_by_4,
       {},
       {{"decoder.0.scale", at::ones({8})}}},
      // From one place to more than are listed.
      {"units",
       keep,
       {{layers, large_convolution(true, 2000, 2000, 0)}},
       {{"decoder.0.weight", at::ones({4, 1, 1, 1})}, {"decoder.0.bias", at::ones({1})}}},
      {"places times taps",
       keep,
       {{layers, large_convolution(false, 1001, 1, 501)}},
       {{"decoder.0.weight", at::ones({1, 4, 3, 3})}, {"decoder.0.bias", at::ones({1})}}},
      {"under N(0, I) without labels",
       keep,
       {{"/functions/-", "prior"}},
       {{"prior.loc", at::zeros({4})}, {"prior.scale_tril", at::eye(4)}}},
  };
  for (const Fault& fault : faults)
    expect_error(ErrorKind::kData, {fault.message}, [&] {
      read_manifest(altered([&](json& description, SafeTensors& arrays) {
                      fault.alter(description, arrays);
                      for (const auto& [place, value] : fault.values) {
                        const json::json_pointer pointer(place);
                        if (!value.is_null())
                          description[pointer] = value;
                        else if (description[pointer.parent_pointer()].is_array())
                          description[pointer.parent_pointer()].erase(std::stoul(pointer.back()));
                        else
                          description[pointer.parent_pointer()].erase(pointer.back());
                      }
                      for (const auto& [name, tensor] : fault.arrays) put(arrays, name, tensor);
                    }),
                    "file");
    });
}

}  // namespace
}  // namespace crais
