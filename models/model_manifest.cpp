#include "models/model_manifest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/binarisation.h"
#include "io/json.h"
#include "models/file_fields.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kManifestVersion = 1;
constexpr int64_t kMaxValues = int64_t{1} << 30;
constexpr int64_t kMaxBatch = 1 << 16;
constexpr size_t kMostDimensions = 8;
constexpr int64_t kMostLayers = 100;
// Limits of a convolution, whose places are listed in memory: places times taps, units of an image.
constexpr int64_t kMostConnections = int64_t{1} << 22, kMostUnits = int64_t{1} << 21;
constexpr double kValueTolerance = 1e-4;  // relative, between compiled and eager values
constexpr double kGradTolerance = 1e-3;
constexpr double kForceTolerance = 2e-2;  // bfloat16 rounds to 4e-3

/// Reads sizes whose product is at most kMaxValues.
std::vector<int64_t> shape_of(const FileFields& f, const std::string& key, size_t least = 1) {
  std::vector<int64_t> sizes = f.integers(key, least, kMostDimensions, 1, kMaxValues);
  int64_t room = kMaxValues;
  for (const int64_t size : sizes) {
    room /= size;
    if (room == 0) throw f.wrong(key, "of at most ", kMaxValues, " numbers in all");
  }
  return sizes;
}

LabelDescription read_labels(const FileFields& f) {
  const std::string dtype = f.text("dtype");
  if (dtype != "float32" && dtype != "int64") throw f.wrong("dtype", "float32 or int64");
  return {shape_of(f, "shape", 0), dtype == "int64" ? at::kLong : at::kFloat};
}

ModelDescription read_description(const FileFields& f) {
  ModelDescription model{.name = f.text("name"),
                         .kind = "exported",
                         .latent = f.integer("latent", 1, kMostLatents),
                         .data_shape = shape_of(f, "data_shape"),
                         .functions = f.words("functions")};
  if (!model.has("joint")) throw f.wrong("functions", "a list with \"joint\"");
  model.likelihood = f.object("likelihood").text("name");
  if (model.likelihood == "squared-error")  // of earlier versions, for curves alone
    throw f.wrong("likelihood", "one that gives p(x)");
  model.prior = f.object("prior").text("name");
  model.low = f.number_or_null("low");
  model.high = f.number_or_null("high");
  model.step = f.number_or_null("step");
  if (model.step && !(*model.step > 0)) throw f.wrong("step", "positive");
  if (model.likelihood == "bernoulli") model.step = 1.0;  // missing in older files
  model.is_mass = f.number_or_null("levels").has_value();
  if (!f.at("binarisation").is_null())
    model.binarisation = to_string(f.parsed("binarisation", parse_binarisation));
  if (f.has("warnings")) model.warnings = f.words("warnings");
  if (f.has("labels")) model.labels = read_labels(f.object("labels"));
  return model;
}

/// Reads the layers of a decoder or of an MLP, whose weights are arrays of the file.
class LayerReader {
 public:
  LayerReader(const SafeTensors& arrays, std::string where)
      : arrays_(arrays), where_(std::move(where)) {}

  /// The MLPs of the description `f`, whose architecture is its likelihood alone.
  Vae vae(const FileFields& f, const ModelDescription& model) const {
    Vae vae;
    vae.architecture.likelihood = f.parsed("likelihood", parse_likelihood);
    vae.decoder = network(f, "decoder", model.latent, model.num_values());
    if (f.has("encoder")) vae.encoder = network(f, "encoder", model.num_values(), 2 * model.latent);
    return vae;
  }

  DecoderNetwork decoder(const FileFields& f, const ModelDescription& model) const {
    if (model.has("prior") || model.labels)
      throw f.wrong("layers", "of a decoder under N(0, I) without labels");
    DecoderNetwork network{.likelihood = f.parsed("likelihood", parse_likelihood)};
    const json& layers = f.at("layers");
    if (!layers.is_array() || layers.empty() || layers.size() > kMostLayers)
      throw f.wrong("layers", "a list of 1 to ", kMostLayers);
    int64_t width = model.latent;
    for (const json& described : layers) {
      if (!described.is_object()) throw f.wrong("layers", "a list of descriptions");
      const std::string name = "decoder." + std::to_string(network.layers.size());
      const FileFields fields(described, where_ + ": \"" + name + "\"");
      network.layers.push_back(layer(fields, name, width));
      Layer& last = network.layers.back();
      if (!fields.at("activation").is_null())
        last.activation = fields.parsed("activation", parse_activation);
      if (described.contains("skip")) last.skip = skip(fields.object("skip"), network.layers);
      width = last.outputs();
      if (described.contains("normalisation"))
        last.normalisation = normalisation(fields.object("normalisation"), name, width);
    }
    if (width != model.num_values())
      throw f.wrong("layers", "a decoder with ", model.num_values(), " outputs");
    return network;
  }

 private:
  at::Tensor array(const std::string& name, at::IntArrayRef shape,
                   at::ScalarType type = at::kFloat) const {
    return tensor_of(arrays_, name, shape, where_, type);
  }

  Network network(const FileFields& f, const std::string& name, int64_t inputs,
                  int64_t outputs) const {
    std::vector<Layer> layers;
    int64_t width = inputs;
    while (true) {
      const std::string layer = "mlp." + name + "." + std::to_string(layers.size());
      if (!arrays_.find(layer + ".weight")) break;
      layers.push_back(dense(layer, width));
      width = layers.back().outputs();
    }
    if (layers.empty() || width != outputs)
      throw f.wrong(name, "an MLP with ", outputs, " outputs");
    return mlp(std::move(layers), f.parsed(name, parse_activation));
  }

  Layer layer(const FileFields& f, const std::string& name, int64_t inputs) const {
    const std::string kind = f.text("kind");
    if (kind == "dense") return dense(name, inputs);
    if (kind != "convolution" && kind != "interpolation")
      throw f.wrong("kind", "dense, convolution or interpolation");
    const Convolution::Shape from = image(f, "input"), to = image(f, "output");
    if (from.units() != inputs) throw f.wrong("input", "of the ", inputs, " units that come");
    if (std::max(from.units(), to.units()) > kMostUnits)
      throw f.wrong("output", "an image of at most ", kMostUnits, " units");
    return kind == "convolution" ? convolution(f, name, from, to)
                                 : interpolation(f, name, from, to);
  }

  Layer dense(const std::string& name, int64_t inputs) const {
    const at::Tensor weight = array(name + ".weight", {-1, inputs});
    return {weight, array(name + ".bias", {weight.size(0)}), {}};
  }

  Layer convolution(const FileFields& f, const std::string& name, const Convolution::Shape& from,
                    const Convolution::Shape& to) const {
    const auto along_axes = [&](const char* key, int64_t least) -> Convolution::Pair {
      const std::vector<int64_t> pair = f.integers(key, 2, 2, least, 1 << 16);
      return {pair[0], pair[1]};
    };
    Convolution c{.transposed = f.flag("transposed"), .input = from, .output = to};
    c.stride = along_axes("stride", 1);
    c.padding = along_axes("padding", 0);
    c.dilation = along_axes("dilation", 1);
    const int64_t first = c.transposed ? from.channels : to.channels,
                  second = c.transposed ? to.channels : from.channels;
    const at::Tensor weight = array(name + ".weight", {first, second, -1, -1});
    c.kernel = {weight.size(2), weight.size(3)};
    if (!c.is_possible()) throw f.wrong("output", "what a convolution makes of its input");
    const int64_t places = (c.transposed ? from : to).places();
    if (places > kMostConnections / (c.kernel[0] * c.kernel[1]))
      throw f.wrong("output", "of at most ", kMostConnections, " places times taps of the kernel");
    return {weight, array(name + ".bias", {to.channels}), c};
  }

  Layer interpolation(const FileFields& f, const std::string& name, const Convolution::Shape& from,
                      const Convolution::Shape& to) const {
    if (from.channels != to.channels) throw f.wrong("output", "of as many channels as the input");
    const at::Tensor weight = array(name + ".weight", {to.places(), -1});
    if (weight.numel() > kMostConnections)
      throw f.wrong("output", "of at most ", kMostConnections, " taps");
    const at::Tensor places = array(name + ".places", weight.sizes(), at::kLong);
    if (places.min().item<int64_t>() < 0 || places.max().item<int64_t>() >= from.places())
      throw f.wrong(name + ".places", "a place of the input for each weight");
    Layer layer{weight, array(name + ".bias", {to.channels}), {}};
    layer.interpolation = {from, to, places};
    return layer;
  }

  /// A residual connection of the layer after `layers`.
  static Skip skip(const FileFields& f, const std::vector<Layer>& layers) {
    const auto last = static_cast<int64_t>(layers.size()) - 1;
    const int64_t from = f.integer("from", 0, kMostLayers);
    if (from >= last || layers[static_cast<size_t>(from)].outputs() != layers.back().outputs())
      throw f.wrong("from", "an earlier layer with as many outputs");
    return {from, f.flag("before_activation")};
  }

  /// The normalisation of a layer with `units` outputs.
  Normalisation normalisation(const FileFields& f, const std::string& name, int64_t units) const {
    Normalisation found{.groups = f.integer("groups", 1, units)};
    if (units % found.groups != 0) throw f.wrong("groups", "a divisor of ", units, " units");
    found.eps = f.number("eps");
    if (!(found.eps >= 0)) throw f.wrong("eps", "a number of at least 0");
    found.scale = array(name + ".scale", {units});
    found.shift = array(name + ".shift", {units});
    return found;
  }

  static Convolution::Shape image(const FileFields& f, const std::string& key) {
    const std::vector<int64_t> sizes = shape_of(f, key, 3);
    if (sizes.size() != 3) throw f.wrong(key, "channels, rows and columns");
    return {sizes[0], sizes[1], sizes[2]};
  }

  const SafeTensors& arrays_;
  std::string where_;
};

ModelManifest manifest_of(const FileFields& f, SafeTensors arrays, const std::string& where) {
  if (f.text("format") != "crais-model") throw f.wrong("format", "crais-model");
  if (f.natural("version") != kManifestVersion) throw f.wrong("version", kManifestVersion);
  if (f.text("dtype") != "float32") throw f.wrong("dtype", "float32");
  ModelManifest m{.model = read_description(f),
                  .torch = f.text("torch"),
                  .machine = f.text("machine"),
                  .cpu_flags = f.words("cpu_flags"),
                  .uniforms = f.integer("uniforms", 0, kMaxValues),
                  .batch = f.integer("batch", 1, kMaxBatch)};
  if (f.has("device")) m.device = f.text("device");
  if (m.device != "cpu" && m.device != "cuda") throw f.wrong("device", "cpu or cuda");
  m.arrays = std::move(arrays);
  const LayerReader layers(m.arrays, where);
  if (f.has("mlp")) {
    std::erase(m.model.functions, kJointForces);  // weights have their own forces
    m.vae = layers.vae(f.object("mlp"), m.model);
  }
  if (f.has("decoder")) m.decoder = layers.decoder(f.object("decoder"), m.model);
  return m;
}

/// Checks the arrays of a manifest against its description and against each other.
void check_arrays(const ModelManifest& manifest, const std::string& where) {
  const ModelDescription& model = manifest.model;
  const auto rows_of = [&](const std::string& name, std::vector<int64_t> shape,
                           at::ScalarType type = at::kFloat) {
    shape.insert(shape.begin(), -1);
    return tensor_of(manifest.arrays, name, shape, where, type).size(0);
  };
  const auto require = [&](bool holds, const std::string& fault) {
    if (!holds) throw data_error(where, ": ", fault);
  };
  const bool has_pairs = manifest.arrays.find("pairs.z") != nullptr;
  const int64_t rows = rows_of("check.z", {model.latent}),
                pairs = has_pairs ? rows_of("pairs.z", {model.latent}) : 0;
  require(rows_of("check.x", model.data_shape) == rows && rows_of("check.value", {}) == rows &&
              rows_of("check.grad", {model.latent}) == rows &&
              (!model.has(kJointForces) || rows_of("check.grad_bfloat16", {model.latent}) == rows),
          "the self-check's arrays do not belong together");
  require(!model.has("prior") || (rows_of("prior.loc", {}) == model.latent &&
                                  rows_of("prior.scale_tril", {model.latent}) == model.latent),
          "the prior's moments are not of " + std::to_string(model.latent) + " dimensions");
  require(!has_pairs || rows_of("pairs.x", model.data_shape) == pairs,
          "simulated data and latents are not as many");
  if (!model.labels) return;
  const auto& [shape, type, low, high] = *model.labels;
  rows_of("labels", shape, type);
  require(rows_of("check.y", shape, type) == rows &&
              (!has_pairs || rows_of("pairs.y", shape, type) == pairs),
          "its labels are not as many as its data");
}

bool differ(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const double apart = (a - b).abs().max().item<double>();
  return !(apart <= tolerance * (1 + b.abs().max().item<double>()));  // true for NaN
}

}  // namespace

ModelManifest read_manifest(const std::string& bytes, const std::string& where) {
  try {
    SafeTensors arrays = parse_safetensors(bytes, where);
    const auto text = arrays.metadata.find("crais");
    if (text == arrays.metadata.end()) throw data_error(where, " does not describe a model");
    const std::string place = where + ": description";
    const json description = parse_json(text->second, place);
    ModelManifest manifest = manifest_of(FileFields(description, place), std::move(arrays), where);
    check_arrays(manifest, where);
    if (manifest.model.labels && manifest.model.labels->dtype == at::kLong) {
      manifest.model.labels->low = manifest.array("labels").min().item<int64_t>();
      manifest.model.labels->high = manifest.array("labels").max().item<int64_t>();
    }
    return manifest;
  } catch (const Error& error) {
    throw data_error(error.what(), kExportAgain);
  }
}

void check_values(const ModelManifest& manifest, const LatentModel& model,
                  const std::string& where) {
  const at::Tensor &z = manifest.array("check.z"), &x = manifest.array("check.x");
  const at::Tensor y = model.description().labels ? manifest.array("check.y") : at::Tensor();
  const LatentModel::Density found = model.joint(z, x, y);
  const auto differs = [&](const at::Tensor& tensor, const char* name, double tolerance) {
    return differ(tensor.to(at::kCPU), manifest.array(name).to(tensor.scalar_type()), tolerance);
  };
  bool wrong = differs(found.value, "check.value", kValueTolerance) ||
               differs(found.grad, "check.grad", kGradTolerance);
  if (!wrong && manifest.model.has(kJointForces) && model.has_forces(at::kBFloat16)) {
    const LatentModel::Density forced = model.joint_with_forces(z, x, y, at::kBFloat16);
    wrong = differs(forced.value, "check.value", kValueTolerance) ||
            differs(forced.grad, "check.grad_bfloat16", kForceTolerance);
  }
  if (!wrong && manifest.decoder) {
    const DecoderNetwork& decoder = *manifest.decoder;
    const at::Tensor prior = 0.5 * (z.square() + std::log(2 * M_PI)).sum(1);
    wrong = differs(decoder.likelihood.log_prob(x.flatten(1), decoder.forward(z)) - prior,
                    "check.value", kValueTolerance);
  }
  if (wrong)
    throw data_error(where, ": its code does not compute here what PyTorch did at export",
                     kExportAgain, " on this machine");
}

}  // namespace crais
