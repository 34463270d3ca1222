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
constexpr int64_t kMaxLatent = 1 << 16;
constexpr int64_t kMaxValues = int64_t{1} << 30;
constexpr int64_t kMaxBatch = 1 << 16;
constexpr double kValueTolerance = 1e-4;  // relative, of compiled against eager values
constexpr double kGradTolerance = 1e-3;

class ManifestReader {
 public:
  ManifestReader(const json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  ModelManifest read() const {
    if (text("format") != "crais-model") throw wrong("format", "crais-model");
    if (integer("version", 1, kMaxValues) != kManifestVersion)
      throw wrong("version", std::to_string(kManifestVersion) + kExportAgain);
    if (text("dtype") != "float32") throw wrong("dtype", "float32");
    ModelManifest m;
    m.model.kind = "exported";
    m.model.name = text("name");
    m.model.latent = integer("latent", 1, kMaxLatent);
    m.model.data_shape = shape("data_shape");
    m.model.functions = words("functions");
    if (!m.model.has("joint")) throw wrong("functions", "a list with \"joint\"");
    m.model.likelihood = name_of("likelihood");
    m.model.prior = name_of("prior");
    m.model.low = number("low");
    m.model.high = number("high");
    m.model.step = number("step");
    if (m.model.step && !(*m.model.step > 0)) throw wrong("step", "positive");
    m.model.is_mass = number("levels").has_value();
    const json& binarisation = field("binarisation");
    if (!binarisation.is_null()) m.model.binarisation = checked_binarisation(text("binarisation"));
    m.torch = text("torch");
    m.machine = text("machine");
    m.cpu_flags = words("cpu_flags");
    m.uniforms = integer("uniforms", 0, kMaxValues);
    m.batch = integer("batch", 1, kMaxBatch);
    return m;
  }

 private:
  Error wrong(const std::string& key, const std::string& right) const {
    return data_error(where_ + ": \"" + key + "\" is not " + right);
  }
  const json& field(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw data_error(where_ + ": \"" + key + "\" is missing");
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
  std::string checked_binarisation(const std::string& name) const {
    try {
      return to_string(parse_binarisation(name));
    } catch (const Error& error) {
      throw data_error(where_ + ": " + error.what());
    }
  }
  std::string name_of(const std::string& key) const {
    const json& spec = field(key);
    if (!spec.is_object()) throw wrong(key, "an object with a name");
    return ManifestReader(spec, where_ + ": \"" + key + "\"").text("name");
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
  std::vector<int64_t> shape(const std::string& key) const {
    const json& list = field(key);
    if (!list.is_array() || list.empty() || list.size() > 8)
      throw wrong(key, "a list of 1 to 8 sizes");
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
      if (!word.is_string()) throw wrong(key, "a list of words");
      found.push_back(word.get<std::string>());
    }
    return found;
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
    if (model.has("prior") && (rows_of("prior.loc", {}) != model.latent ||
                               rows_of("prior.scale_tril", {model.latent}) != model.latent))
      throw data_error(where_ + ": the prior's moments are not of " + std::to_string(model.latent) +
                       " dimensions" + kExportAgain);
    if (manifest_.arrays.find("pairs.z") &&
        rows_of("pairs.x", model.data_shape) != rows_of("pairs.z", {model.latent}))
      throw data_error(where_ + ": simulated data and latents are not as many" + kExportAgain);
  }

 private:
  /// The first size of an array whose others are `shape`.
  int64_t rows_of(const std::string& name, const std::vector<int64_t>& shape) const {
    const at::Tensor* found = manifest_.arrays.find(name);
    if (!found || found->scalar_type() != at::kFloat || found->dim() < 1 ||
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
  ModelManifest manifest = ManifestReader(parse_json(text->second, place), place).read();
  manifest.arrays = std::move(arrays);
  ArrayChecks(manifest, where).run();
  return manifest;
}

void check_values(const ModelManifest& manifest, const LatentModel& model,
                  const std::string& where) {
  const LatentModel::Density found =
      model.joint(manifest.array("check.z"), manifest.array("check.x"));
  if (differ(found.value, manifest.array("check.value"), kValueTolerance) ||
      differ(found.grad, manifest.array("check.grad"), kGradTolerance))
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
  if (!manifest_.model.has("simulate"))
    return {manifest_.array("pairs.x").slice(0, i, i + 1),
            manifest_.array("pairs.z").slice(0, i, i + 1)};
  constexpr double kLeast = 1.0 / (1 << 25);  // uniform numbers are above 0, half a step of float32
  const int64_t dim = manifest_.model.latent;
  at::Generator rng =
      make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
  const at::Tensor normal = at::empty({1, dim}, at::kFloat).normal_(0, 1, rng);
  const at::Tensor uniform =
      at::empty({1, manifest_.uniforms}, at::kFloat).uniform_(0, 1, rng).clamp_min_(kLeast);
  std::vector<int64_t> shape = manifest_.model.data_shape;
  shape.insert(shape.begin(), 1);
  const auto result = checked("simulate", call("simulate", {normal, uniform}), {{1, dim}, shape});
  return {result[1], result[0]};
}

std::vector<at::Tensor> ManifestModel::checked(
    const std::string& function, std::vector<at::Tensor> results,
    const std::vector<std::vector<int64_t>>& shapes) const {
  bool fits = results.size() == shapes.size();
  for (size_t i = 0; fits && i < shapes.size(); ++i)
    fits = at::isFloatingType(results[i].scalar_type()) &&
           (shapes[i].empty() || results[i].sizes() == at::IntArrayRef(shapes[i]));
  if (!fits)
    throw data_error(where_ + ": '" + function + "' does not return what its description says" +
                     kExportAgain);
  return results;
}

std::optional<LatentModel::Posterior> ManifestModel::encode(const at::Tensor& x) const {
  if (!manifest_.model.has("encode")) return {};
  const int64_t rows = x.size(0), dim = manifest_.model.latent;
  const auto found = checked("encode", call("encode", {x}), {{rows, dim}, {}});
  const at::Tensor &loc = found[0], &scale = found[1];
  if (scale.sizes() == at::IntArrayRef({rows, dim})) return Posterior{loc, (0.5 * scale).exp()};
  if (scale.sizes() != at::IntArrayRef({rows, dim, dim}))
    throw data_error(where_ + ": its encoder returns neither log_var nor scale_tril");
  return Posterior{loc, scale};
}

std::optional<LatentModel::Output> ManifestModel::output(const at::Tensor& z) const {
  if (!manifest_.model.has("output")) return {};
  const auto found = checked("output", call("output", {z}), {{}, {}});
  if (found[0].dim() != 2 || found[0].size(0) != z.size(0) || found[0].sizes() != found[1].sizes())
    throw data_error(where_ + ": its output and Fisher weights are not [rows, M]");
  return Output{found[0], found[1]};
}

}  // namespace crais
