#include "models/model_manifest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/rng.h"
#include "data/binarisation.h"
#include "io/json.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr int64_t kManifestVersion = 1;
constexpr int64_t kMaxValues = int64_t{1} << 30;
constexpr int64_t kMaxBatch = 1 << 16;
constexpr int64_t kMostLayers = 100;
// Of a convolution, whose places are listed in memory: places times taps, and units of an image.
constexpr int64_t kMostConnections = int64_t{1} << 22, kMostUnits = int64_t{1} << 21;
constexpr double kValueTolerance = 1e-4;  // relative, of compiled against eager values
constexpr double kGradTolerance = 1e-3;
constexpr double kForceTolerance = 2e-2;  // bfloat16 rounds to 4e-3

class ManifestReader {
 public:
  ManifestReader(const json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  ModelManifest read(SafeTensors arrays) const {
    if (text("format") != "crais-model") throw wrong("format", "crais-model");
    if (integer("version", 1, kMaxValues) != kManifestVersion)
      throw wrong("version", std::to_string(kManifestVersion) + kExportAgain);
    if (text("dtype") != "float32") throw wrong("dtype", "float32");
    ModelManifest m;
    m.model.kind = "exported";
    m.model.name = text("name");
    m.model.latent = integer("latent", 1, kMostLatents);
    m.model.data_shape = shape("data_shape");
    m.model.functions = words("functions");
    if (!m.model.has("joint")) throw wrong("functions", "a list with \"joint\"");
    m.model.likelihood = name_of("likelihood");
    m.model.noise_sd = noise_sd();
    m.model.prior = name_of("prior");
    m.model.low = number("low");
    m.model.high = number("high");
    m.model.step = number("step");
    if (m.model.step && !(*m.model.step > 0)) throw wrong("step", "positive");
    if (m.model.likelihood == "bernoulli") m.model.step = 1.0;  // which earlier files leave out
    m.model.is_mass = number("levels").has_value();
    const json& binarisation = field("binarisation");
    if (!binarisation.is_null())
      m.model.binarisation = to_string(parsed("binarisation", parse_binarisation));
    if (const auto found = object_.find("warnings"); found != object_.end())
      m.model.warnings = words("warnings");
    m.torch = text("torch");
    m.machine = text("machine");
    m.cpu_flags = words("cpu_flags");
    m.uniforms = integer("uniforms", 0, kMaxValues);
    m.batch = integer("batch", 1, kMaxBatch);
    if (const auto device = object_.find("device"); device != object_.end())
      m.device = text("device");
    if (m.device != "cpu" && m.device != "cuda") throw wrong("device", "cpu or cuda");
    if (const auto labels = object_.find("labels"); labels != object_.end() && !labels->is_null())
      m.model.labels = ManifestReader(*labels, where_ + ": \"labels\"").read_labels();
    const auto forces = object_.find("forces");
    const bool has_forces = forces != object_.end() && !forces->is_null();
    if (has_forces) m.forces_pay = ManifestReader(*forces, where_ + ": \"forces\"").read_forces();
    if (has_forces != m.model.has(kJointForces))
      throw wrong("forces", std::string("there if and only if \"") + kJointForces + "\" is");
    m.arrays = std::move(arrays);
    const auto mlp = object_.find("mlp");
    if (mlp != object_.end() && has_forces)
      throw wrong("forces", "of a compiled model; this one is weights");
    if (mlp != object_.end()) m.vae = ManifestReader(*mlp, where_ + ": \"mlp\"").read_vae(m);
    const auto decoder = object_.find("decoder");
    if (decoder != object_.end() && !decoder->is_null())
      m.decoder = ManifestReader(*decoder, where_ + ": \"decoder\"").read_decoder(m);
    return m;
  }

 private:
  Error wrong(const std::string& key, const std::string& right) const {
    return data_error(where_ + ": \"" + key + "\" is not " + right);
  }
  const json& field(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end())
      throw data_error(where_ + ": \"" + key + "\" is missing" + kExportAgain);
    return *found;
  }
  std::string text(const std::string& key) const {
    const json& value = field(key);
    if (!value.is_string() || value.get_ref<const std::string&>().size() > 200)
      throw wrong(key, "a short text");
    auto text = value.get<std::string>();
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
      throw wrong(key, "a text without control characters");
    return text;
  }
  /// A text in the form that one of our own parsers takes.
  template <typename Value>
  Value parsed(const std::string& key, Value (*parse)(const std::string&)) const {
    try {
      return parse(text(key));
    } catch (const Error& error) {
      throw data_error(where_ + ": " + error.what());
    }
  }
  std::string name_of(const std::string& key) const {
    const json& spec = field(key);
    if (!spec.is_object()) throw wrong(key, "an object with a name");
    return ManifestReader(spec, where_ + ": \"" + key + "\"").text("name");
  }
  /// Of a normal likelihood whose scale is one number.
  std::optional<double> noise_sd() const {
    const std::string name = name_of("likelihood");
    const json& spec = field("likelihood");
    const auto scale = spec.find("scale");
    if ((name != "gaussian" && name != kSquaredError) || scale == spec.end() || !scale->is_number())
      return {};
    const auto sd = scale->get<double>();
    if (!std::isfinite(sd) || !(sd > 0)) throw wrong("likelihood", "of a scale above 0");
    return sd;
  }
  int64_t integer(const std::string& key, int64_t low, int64_t high) const {
    return checked(field(key), key, low, high);
  }
  int64_t checked(const json& value, const std::string& key, int64_t low, int64_t high) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(high) ||
        value.get<int64_t>() < low)
      throw wrong(key, "a whole number in " + std::to_string(low) + ".." + std::to_string(high));
    return value.get<int64_t>();
  }
  std::optional<double> number(const std::string& key) const {
    const json& value = field(key);
    if (value.is_null()) return {};
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      throw wrong(key, "a finite number or null");
    return value.get<double>();
  }
  LabelDescription read_labels() const {
    if (!object_.is_object()) throw wrong("labels", "described");
    const std::string dtype = text("dtype");
    if (dtype != "float32" && dtype != "int64") throw wrong("dtype", "float32 or int64");
    return {shape("shape", 0), dtype == "int64" ? at::kLong : at::kFloat};
  }
  /// Whether forces in bfloat16 are said to be faster.
  bool read_forces() const {
    if (!object_.is_object()) throw wrong("forces", "described");
    if (text("dtype") != "bfloat16") throw wrong("dtype", "bfloat16");
    if (!field("pays").is_boolean()) throw wrong("pays", "true or false");
    return field("pays").get<bool>();
  }
  std::vector<int64_t> shape(const std::string& key, size_t least = 1) const {
    const json& list = field(key);
    if (!list.is_array() || list.size() < least || list.size() > 8)
      throw wrong(key, "a list of " + std::to_string(least) + " to 8 sizes");
    std::vector<int64_t> sizes;
    int64_t product = 1;
    for (const json& size : list) {
      sizes.push_back(checked(size, key, 1, kMaxValues / product));
      product *= sizes.back();
    }
    return sizes;
  }
  std::vector<std::string> words(const std::string& key) const {
    const json& list = field(key);
    if (!list.is_array() || list.size() > 1000) throw wrong(key, "a list of words");
    std::vector<std::string> found;
    for (const json& word : list) {
      if (!word.is_string() || word.get_ref<const std::string&>().size() > 1000)
        throw wrong(key, "a list of words");
      found.push_back(word.get<std::string>());
    }
    return found;
  }

  /// The weights among a manifest's arrays, which this object describes.
  Vae read_vae(const ModelManifest& m) const {
    if (!object_.is_object()) throw wrong("decoder", "described");
    const int64_t latent = m.model.latent, values = m.model.num_values();
    Vae vae;
    vae.architecture.image_rows = 1;
    vae.architecture.image_cols = values;
    vae.architecture.latent = latent;
    vae.architecture.likelihood = parsed("likelihood", parse_likelihood);
    vae.decoder = read_mlp(m.arrays, "decoder", latent, values);
    if (!field("encoder").is_null())
      vae.encoder = read_mlp(m.arrays, "encoder", values, 2 * latent);
    vae.architecture.activation = parsed("decoder", parse_activation);
    vae.architecture.hidden.clear();  // the decoder's, from its end
    for (size_t i = vae.decoder.layers.size(); --i > 0;)
      vae.architecture.hidden.push_back(vae.decoder.layers[i].weight.size(1));
    return vae;
  }
  Network read_mlp(const SafeTensors& arrays, const std::string& name, int64_t inputs,
                   int64_t outputs) const {
    std::vector<Layer> layers;
    int64_t width = inputs;
    while (true) {
      const std::string layer = "mlp." + name + "." + std::to_string(layers.size());
      if (!arrays.find(layer + ".weight") || !arrays.find(layer + ".bias")) break;
      layers.push_back(read_dense(arrays, layer, width));
      width = layers.back().weight.size(0);
    }
    if (layers.empty() || width != outputs)
      throw wrong(name, "an MLP with " + std::to_string(outputs) + " outputs");
    return mlp(std::move(layers), parsed(name, parse_activation));
  }

  /// The layers that this object describes, their weights among the manifest's arrays.
  DecoderNetwork read_decoder(const ModelManifest& m) const {
    if (!object_.is_object()) throw wrong("layers", "described");
    if (m.model.has("prior") || m.model.labels)
      throw wrong("layers", "of a decoder under N(0, I) without labels");
    DecoderNetwork network;
    network.likelihood = parsed("likelihood", parse_likelihood);
    const json& layers = field("layers");
    if (!layers.is_array() || layers.empty() || layers.size() > kMostLayers)
      throw wrong("layers", "a list of 1 to " + std::to_string(kMostLayers));
    int64_t width = m.model.latent;
    for (const json& layer : layers) {
      const std::string name = "decoder." + std::to_string(network.layers.size());
      const ManifestReader reader(layer, where_ + ": \"" + name + "\"");
      if (!layer.is_object()) throw wrong("layers", "a list of descriptions");
      const std::string kind = reader.text("kind");
      if (kind == "dense")
        network.layers.push_back(reader.read_dense(m.arrays, name, width));
      else if (kind == "convolution")
        network.layers.push_back(reader.read_convolution(m.arrays, name, width));
      else if (kind == "interpolation")
        network.layers.push_back(reader.read_interpolation(m.arrays, name, width));
      else
        throw reader.wrong("kind", "dense, convolution or interpolation");
      if (!reader.field("activation").is_null())
        network.layers.back().activation = reader.parsed("activation", parse_activation);
      if (layer.contains("skip")) network.layers.back().skip = reader.read_skip(network.layers);
      width = network.layers.back().outputs();
      if (layer.contains("normalisation"))
        network.layers.back().normalisation = reader.read_normalisation(m.arrays, name, width);
    }
    if (width != m.model.num_values())
      throw wrong("layers", "a decoder with " + std::to_string(m.model.num_values()) + " outputs");
    return network;
  }

  /// Of the last of the layers so far.
  Skip read_skip(const std::vector<Layer>& layers) const {
    const json& skip = field("skip");
    if (!skip.is_object()) throw wrong("skip", "described");
    const ManifestReader reader(skip, where_ + ": \"skip\"");
    const auto last = static_cast<int64_t>(layers.size()) - 1;
    const int64_t from = reader.integer("from", 0, kMostLayers);
    if (from >= last || layers[static_cast<size_t>(from)].outputs() != layers.back().outputs())
      throw reader.wrong("from", "an earlier layer with as many outputs");
    if (!reader.field("before_activation").is_boolean())
      throw reader.wrong("before_activation", "true or false");
    return {from, skip["before_activation"].get<bool>()};
  }

  /// Of a layer with so many outputs.
  Normalisation read_normalisation(const SafeTensors& arrays, const std::string& name,
                                   int64_t units) const {
    const json& described = field("normalisation");
    if (!described.is_object()) throw wrong("normalisation", "described");
    const ManifestReader reader(described, where_ + ": \"normalisation\"");
    Normalisation found;
    found.groups = reader.integer("groups", 1, units);
    if (units % found.groups != 0)
      throw reader.wrong("groups", "a divisor of " + std::to_string(units) + " units");
    const std::optional<double> eps = reader.number("eps");
    if (!eps || !(*eps >= 0)) throw reader.wrong("eps", "a number of at least 0");
    found.eps = *eps;
    found.scale = parameter(arrays, name + ".scale");
    found.shift = parameter(arrays, name + ".shift");
    for (const at::Tensor& one : {found.scale, found.shift})
      if (one.sizes() != at::IntArrayRef({units}))
        throw wrong("normalisation", "of " + std::to_string(units) + " units");
    return found;
  }

  Layer read_dense(const SafeTensors& arrays, const std::string& name, int64_t inputs) const {
    const at::Tensor weight = parameter(arrays, name + ".weight"),
                     bias = parameter(arrays, name + ".bias");
    if (weight.dim() != 2 || weight.size(1) != inputs || bias.dim() != 1 ||
        bias.size(0) != weight.size(0))
      throw wrong(name, "a float32 layer of " + std::to_string(inputs) + " inputs");
    return {weight, bias, {}};
  }

  Layer read_convolution(const SafeTensors& arrays, const std::string& name, int64_t inputs) const {
    const at::Tensor weight = parameter(arrays, name + ".weight"),
                     bias = parameter(arrays, name + ".bias");
    Convolution c;
    if (!field("transposed").is_boolean()) throw wrong("transposed", "true or false");
    c.transposed = field("transposed").get<bool>();
    c.input = image("input");
    c.output = image("output");
    c.stride = along_axes("stride", 1);
    c.padding = along_axes("padding", 0);
    c.dilation = along_axes("dilation", 1);
    const int64_t from = c.transposed ? 0 : 1;  // the dimension of input channels
    if (weight.dim() != 4 || weight.size(from) != c.input.channels ||
        weight.size(1 - from) != c.output.channels || bias.dim() != 1 ||
        bias.size(0) != c.output.channels || c.input.units() != inputs)
      throw wrong(name,
                  "a float32 convolution of its image, " + std::to_string(inputs) + " inputs");
    c.kernel = {weight.size(2), weight.size(3)};
    if (!c.is_possible()) throw wrong("output", "what a convolution makes of its input");
    const int64_t places = (c.transposed ? c.input : c.output).places();
    if (places > kMostConnections / (c.kernel[0] * c.kernel[1]))
      throw wrong(name, "of at most " + std::to_string(kMostConnections) +
                            " places times taps of the kernel");
    if (std::max(c.input.units(), c.output.units()) > kMostUnits)
      throw wrong(name, "of images of at most " + std::to_string(kMostUnits) + " units");
    return {weight, bias, c};
  }

  Layer read_interpolation(const SafeTensors& arrays, const std::string& name,
                           int64_t inputs) const {
    const at::Tensor weight = parameter(arrays, name + ".weight"),
                     bias = parameter(arrays, name + ".bias");
    const at::Tensor* places = arrays.find(name + ".places");
    Interpolation map{image("input"), image("output"), {}};
    if (map.input.channels != map.output.channels || map.input.units() != inputs ||
        bias.dim() != 1 || bias.size(0) != map.output.channels)
      throw wrong(name, "an interpolation of its image, " + std::to_string(inputs) + " inputs");
    if (weight.dim() != 2 || weight.size(0) != map.output.places() ||
        weight.numel() > kMostConnections)
      throw wrong(name, "of at most " + std::to_string(kMostConnections) + " taps of its places");
    if (map.output.units() > kMostUnits)
      throw wrong(name, "of images of at most " + std::to_string(kMostUnits) + " units");
    if (!places || places->scalar_type() != at::kLong || places->sizes() != weight.sizes() ||
        places->min().item<int64_t>() < 0 || places->max().item<int64_t>() >= map.input.places())
      throw wrong(name + ".places", "an array of int64, a place of the input for each weight");
    map.places = *places;
    Layer layer{weight, bias, {}};
    layer.interpolation = map;
    return layer;
  }

  Convolution::Shape image(const std::string& key) const {
    const std::vector<int64_t> sizes = shape(key, 3);
    if (sizes.size() != 3) throw wrong(key, "channels, rows and columns");
    return {sizes[0], sizes[1], sizes[2]};
  }
  Convolution::Pair along_axes(const std::string& key, int64_t least) const {
    constexpr int64_t kMost = 1 << 16;
    const json& list = field(key);
    if (!list.is_array() || list.size() != 2) throw wrong(key, "a pair");
    return {checked(list[0], key, least, kMost), checked(list[1], key, least, kMost)};
  }

  at::Tensor parameter(const SafeTensors& arrays, const std::string& name) const {
    const at::Tensor* found = arrays.find(name);
    if (!found || found->scalar_type() != at::kFloat || found->numel() == 0)
      throw wrong(name, "an array of float32");
    if (!found->isfinite().all().item<bool>()) throw wrong(name, "finite");
    return *found;
  }

  const json& object_;
  std::string where_;
};

/// The arrays of a manifest, checked against its description.
class ArrayChecks {
 public:
  ArrayChecks(const ModelManifest& manifest, std::string where)
      : manifest_(manifest), where_(std::move(where)) {}

  void run() const {
    const ModelDescription& model = manifest_.model;
    const int64_t rows = rows_of("check.z", {model.latent});
    if (rows_of("check.x", model.data_shape) != rows || rows_of("check.value", {}) != rows ||
        rows_of("check.grad", {model.latent}) != rows)
      throw data_error(where_ + ": the self-check's arrays do not belong together" + kExportAgain);
    if (model.has(kJointForces) && rows_of("check.grad_bfloat16", {model.latent}) != rows)
      throw data_error(where_ + ": the self-check's arrays do not belong together" + kExportAgain);
    if (model.has("prior") && (rows_of("prior.loc", {}) != model.latent ||
                               rows_of("prior.scale_tril", {model.latent}) != model.latent))
      throw data_error(where_ + ": the prior's moments are not of " + std::to_string(model.latent) +
                       " dimensions" + kExportAgain);
    const bool pairs = manifest_.arrays.find("pairs.z") != nullptr;
    if (pairs && rows_of("pairs.x", model.data_shape) != rows_of("pairs.z", {model.latent}))
      throw data_error(where_ + ": simulated data and latents are not as many" + kExportAgain);
    if (!model.labels) return;
    const std::vector<int64_t>& shape = model.labels->shape;
    const at::ScalarType dtype = model.labels->dtype;
    rows_of("labels", shape, dtype);
    if (rows_of("check.y", shape, dtype) != rows ||
        (pairs && rows_of("pairs.y", shape, dtype) != rows_of("pairs.z", {model.latent})))
      throw data_error(where_ + ": its labels are not as many as its data" + kExportAgain);
  }

 private:
  /// The first size of an array whose others are `shape`.
  int64_t rows_of(const std::string& name, const std::vector<int64_t>& shape,
                  at::ScalarType dtype = at::kFloat) const {
    const at::Tensor* found = manifest_.arrays.find(name);
    if (!found || found->scalar_type() != dtype || found->dim() < 1 ||
        found->sizes().slice(1) != at::IntArrayRef(shape) || found->size(0) < 1)
      throw data_error(where_ + ": \"" + name + "\" is missing or of another shape" + kExportAgain);
    if (!found->isfinite().all().item<bool>())
      throw data_error(where_ + ": \"" + name + "\" is not finite" + kExportAgain);
    return found->size(0);
  }

  const ModelManifest& manifest_;
  std::string where_;
};

bool differ(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const double apart = (a - b).abs().max().item<double>();
  return !(apart <= tolerance * (1 + b.abs().max().item<double>()));  // true for NaN
}

}  // namespace

ModelManifest read_manifest(const std::string& bytes, const std::string& where) {
  SafeTensors arrays = parse_safetensors(bytes, where);
  const auto text = arrays.metadata.find("crais");
  if (text == arrays.metadata.end())
    throw data_error(where + " does not describe a model" + kExportAgain);
  const std::string place = where + ": description";
  const json description = parse_json(text->second, place);
  ModelManifest manifest = ManifestReader(description, place).read(std::move(arrays));
  ArrayChecks(manifest, where).run();
  if (manifest.model.labels && manifest.model.labels->dtype == at::kLong) {
    manifest.model.labels->low = manifest.array("labels").min().item<int64_t>();
    manifest.model.labels->high = manifest.array("labels").max().item<int64_t>();
  }
  return manifest;
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
    throw data_error(where + ": its code does not compute here what PyTorch did at export" +
                     kExportAgain + " on this machine");
}

ManifestModel::ManifestModel(ModelManifest manifest, std::string where)
    : where_(std::move(where)), manifest_(std::move(manifest)) {}

std::optional<LatentModel::Moments> ManifestModel::prior_moments() const {
  if (!manifest_.model.has("prior")) return {};
  return Moments{manifest_.array("prior.loc"), manifest_.array("prior.scale_tril")};
}

int64_t ManifestModel::num_draws() const {
  if (manifest_.model.has("simulate")) return std::numeric_limits<int64_t>::max();
  const at::Tensor* pairs = manifest_.arrays.find("pairs.z");
  return pairs ? pairs->size(0) : 0;
}

LatentModel::Draws ManifestModel::draw(uint64_t seed, int64_t i) const {
  const auto row_of = [this](const char* name, int64_t row) {
    return manifest_.array(name).slice(0, row, row + 1);
  };
  const bool conditional = manifest_.model.labels.has_value();
  if (!manifest_.model.has("simulate"))
    return {row_of("pairs.x", i), row_of("pairs.z", i),
            conditional ? row_of("pairs.y", i) : at::Tensor()};
  constexpr double kLeast = 1.0 / (1 << 25);  // uniform numbers are above 0, half a step of float32
  const int64_t dim = manifest_.model.latent;
  at::Generator rng =
      make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
  const at::Tensor normal = at::empty({1, dim}, at::kFloat).normal_(0, 1, rng);
  const at::Tensor uniform =
      at::empty({1, manifest_.uniforms}, at::kFloat).uniform_(0, 1, rng).clamp_min_(kLeast);
  at::Tensor label;
  if (conditional) {
    const int64_t labels = manifest_.array("labels").size(0);
    label = row_of("labels", at::randint(labels, {1}, rng, at::kLong).item<int64_t>());
  }
  std::vector<int64_t> shape = manifest_.model.data_shape;
  shape.insert(shape.begin(), 1);
  const auto result = results("simulate", {normal, uniform, label}, {{1, dim}, shape});
  return {result[1], result[0], label};
}

std::vector<at::Tensor> ManifestModel::results(
    const std::string& function, std::vector<at::Tensor> inputs,
    const std::vector<std::vector<int64_t>>& shapes) const {
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [](const at::Tensor& input) { return !input.defined(); }),
               inputs.end());
  std::vector<at::Tensor> found = call(function, std::move(inputs));
  bool fits = found.size() == shapes.size();
  for (size_t i = 0; fits && i < shapes.size(); ++i)
    fits = at::isFloatingType(found[i].scalar_type()) &&
           (shapes[i].empty() || found[i].sizes() == at::IntArrayRef(shapes[i]));
  if (!fits)
    throw data_error(where_ + ": '" + function + "' does not return what its description says" +
                     kExportAgain);
  return found;
}

LatentModel::Density ManifestModel::joint(const at::Tensor& z, const at::Tensor& x,
                                          const at::Tensor& y) const {
  const auto found =
      results("joint", {z, x, y}, {{z.size(0)}, {z.size(0), manifest_.model.latent}});
  return {found[0], found[1]};
}

bool ManifestModel::has_forces(at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && manifest_.model.has(kJointForces);
}

bool ManifestModel::forces_pay(at::ScalarType dtype) const {
  return has_forces(dtype) && manifest_.forces_pay;
}

LatentModel::Density ManifestModel::joint_with_forces(const at::Tensor& z, const at::Tensor& x,
                                                      const at::Tensor& y,
                                                      at::ScalarType dtype) const {
  if (!has_forces(dtype)) return LatentModel::joint_with_forces(z, x, y, dtype);
  const auto found =
      results(kJointForces, {z, x, y}, {{z.size(0)}, {z.size(0), manifest_.model.latent}});
  return {found[0], found[1]};
}

std::optional<LatentModel::Density> ManifestModel::prior(const at::Tensor& z) const {
  if (!manifest_.model.has("prior")) return {};
  const auto found = results("prior", {z}, {{z.size(0)}, {z.size(0), manifest_.model.latent}});
  return Density{found[0], found[1]};
}

std::optional<LatentModel::Posterior> ManifestModel::encode(const at::Tensor& x,
                                                            const at::Tensor& y) const {
  if (!manifest_.model.has("encode")) return {};
  const int64_t rows = x.size(0), dim = manifest_.model.latent;
  const auto found = results("encode", {x, y}, {{rows, dim}, {}});
  const at::Tensor &loc = found[0], &scale = found[1];
  if (scale.sizes() == at::IntArrayRef({rows, dim})) return Posterior{loc, (0.5 * scale).exp()};
  if (scale.sizes() != at::IntArrayRef({rows, dim, dim}))
    throw data_error(where_ + ": its encoder returns neither log_var nor scale_tril");
  return Posterior{loc, scale};
}

std::optional<LatentModel::Output> ManifestModel::output(const at::Tensor& z,
                                                         const at::Tensor& y) const {
  if (!manifest_.model.has("output")) return {};
  const auto found = results("output", {z, y}, {{}, {}});
  if (found[0].dim() != 2 || found[0].size(0) != z.size(0) || found[0].sizes() != found[1].sizes())
    throw data_error(where_ + ": its output and Fisher weights are not [rows, M]");
  return Output{found[0], found[1]};
}

}  // namespace crais
