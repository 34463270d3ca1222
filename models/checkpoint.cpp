#include "models/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/binarisation.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "models/state_dict.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr const char* kKey = "crais";
constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMaxSize = 1 << 20;  // of a layer or an image's side
constexpr size_t kMaxLayers = 64;

json to_json(const VaeArchitecture& architecture) {
  return {{"image_rows", architecture.image_rows},
          {"image_cols", architecture.image_cols},
          {"latent", architecture.latent},
          {"hidden", architecture.hidden},
          {"activation", to_string(architecture.activation)}};
}

/// Typed access to an object of the metadata; a complaint names the file and the key.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) throw data_error(where_ + " is not an object");
  }

  const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw data_error(where_ + " has no \"" + key + "\"");
    return *found;
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) throw wrong(key, "a string");
    return at(key).get<std::string>();
  }
  uint64_t natural(const char* key) const {
    if (!at(key).is_number_unsigned()) throw wrong(key, "a non-negative whole number");
    return at(key).get<uint64_t>();
  }
  int64_t size(const char* key) const { return checked_size(at(key), key); }
  std::vector<int64_t> sizes(const char* key) const {
    const json& list = at(key);
    if (!list.is_array() || list.size() > kMaxLayers)
      throw wrong(key, "a list of at most " + std::to_string(kMaxLayers) + " sizes");
    std::vector<int64_t> sizes;
    for (const json& value : list) sizes.push_back(checked_size(value, key));
    return sizes;
  }
  double number(const char* key) const {
    if (!at(key).is_number() || !std::isfinite(at(key).get<double>()))
      throw wrong(key, "a finite number");
    return at(key).get<double>();
  }

 private:
  Error wrong(const char* key, const std::string& expected) const {
    return data_error(where_ + ": \"" + key + "\" is not " + expected);
  }
  int64_t checked_size(const json& value, const char* key) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
        value.get<uint64_t>() > static_cast<uint64_t>(kMaxSize))
      throw wrong(key, "a size in 1.." + std::to_string(kMaxSize));
    return value.get<int64_t>();
  }

  const json& object_;
  std::string where_;
};

VaeArchitecture read_architecture(const Fields& fields, const std::string& where) {
  const Fields shape(fields.at("architecture"), where + ": \"architecture\"");
  VaeArchitecture architecture;
  architecture.image_rows = shape.size("image_rows");
  architecture.image_cols = shape.size("image_cols");
  architecture.latent = shape.size("latent");
  architecture.hidden = shape.sizes("hidden");
  try {
    architecture.activation = parse_activation(shape.text("activation"));
    architecture.likelihood = parse_likelihood(fields.text("likelihood"));
  } catch (const Error& error) {  // a usage error on the command line, here the file's fault
    throw data_error(where + ": " + error.what());
  }
  return architecture;
}

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// The tensors of a file, taken out one by one with their checks.
class TensorReader {
 public:
  TensorReader(const SafeTensors& content, std::string where)
      : content_(content), where_(std::move(where)) {}

  Network network(const std::string& prefix, const std::vector<int64_t>& sizes,
                  Activation activation) {
    std::vector<Layer> layers;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const std::string place = prefix + "." + std::to_string(2 * i);
      at::Tensor weight = take(place + ".weight", {sizes[i + 1], sizes[i]});
      layers.push_back({weight, take(place + ".bias", {sizes[i + 1]})});
    }
    return mlp(std::move(layers), activation);
  }

  bool has(const std::string& prefix) const {
    return std::any_of(content_.tensors.begin(), content_.tensors.end(),
                       [&](const auto& named) { return named.first.rfind(prefix, 0) == 0; });
  }

  void finish() const {
    for (const auto& [name, tensor] : content_.tensors)
      if (std::find(taken_.begin(), taken_.end(), name) == taken_.end())
        throw data_error(where_ + ": tensor " + quoted(name) +
                         " has no place in the architecture that the file describes");
  }

 private:
  at::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    const at::Tensor* tensor = content_.find(name);
    if (!tensor)
      throw data_error(where_ + ": has no tensor \"" + name + "\" (expected, of shape " +
                       shape_text(shape) + ")");
    if (tensor->scalar_type() != at::kFloat)
      throw data_error(where_ + ": tensor \"" + name + "\" is of type " +
                       at::toString(tensor->scalar_type()) + ", expected Float (F32)");
    if (tensor->sizes() != at::IntArrayRef(shape))
      throw data_error(where_ + ": tensor \"" + name + "\" has shape " +
                       shape_text(tensor->sizes()) + ", expected " + shape_text(shape));
    if (!at::isfinite(*tensor).all().item<bool>())
      throw data_error(where_ + ": tensor \"" + name + "\" holds NaN or infinite values");
    taken_.push_back(name);
    return *tensor;
  }

  const SafeTensors& content_;
  std::string where_;
  std::vector<std::string> taken_;
};

CheckpointInfo read_info(const Fields& fields, const std::string& where) {
  CheckpointInfo info;
  try {
    info.binarisation = to_string(parse_binarisation(fields.text("binarisation")));
  } catch (const Error& error) {
    throw data_error(where + ": " + error.what());
  }
  info.objective = fields.text("objective");
  info.data = fields.text("data");
  info.data_md5 = fields.text("data_md5");
  info.seed = fields.natural("seed");
  info.epochs = static_cast<int64_t>(fields.natural("epochs"));
  info.validation_elbo = fields.number("validation_elbo");
  info.libtorch_version = fields.text("libtorch_version");
  return info;
}

Vae read_vae(const SafeTensors& content, const VaeArchitecture& architecture,
             const std::string& where) {
  TensorReader reader(content, where);
  Vae vae{architecture, {}, {}};
  std::vector<int64_t> sizes = {architecture.latent};
  sizes.insert(sizes.end(), architecture.hidden.rbegin(), architecture.hidden.rend());
  sizes.push_back(architecture.num_pixels());
  vae.decoder = reader.network("decoder", sizes, architecture.activation);
  if (reader.has("encoder.")) {
    sizes.front() = 2 * architecture.latent;
    vae.encoder =
        reader.network("encoder", {sizes.rbegin(), sizes.rend()}, architecture.activation);
  }
  reader.finish();
  return vae;
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  return checkpoint_of({parse_safetensors(bytes, path.string()), path.string(), sha256(bytes)});
}

Checkpoint checkpoint_of(const StateDict& content) {
  const std::string& file = content.source;
  const auto found = content.metadata.find(kKey);
  if (found == content.metadata.end())
    throw data_error(file + ": not a crais checkpoint (no \"crais\" in its metadata)");
  const std::string where = file + ": metadata";
  const json object = parse_json(found->second, where);
  const Fields fields(object, where);
  if (fields.natural("format_version") != kFormatVersion)
    throw data_error(file + ": checkpoint format version " + fields.at("format_version").dump() +
                     ", this program reads version " + std::to_string(kFormatVersion));
  if (fields.text("prior") != "standard-normal")
    throw data_error(file + ": prior " + quoted(fields.text("prior")) +
                     ", expected \"standard-normal\"");
  return {read_vae(content, read_architecture(fields, where), file), read_info(fields, where),
          content.sha256};
}

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const VaeArchitecture& architecture = checkpoint.vae.architecture;
  const CheckpointInfo& info = checkpoint.info;
  const json metadata = {
      {"format_version", kFormatVersion},
      {"architecture", to_json(architecture)},
      {"likelihood", to_string(architecture.likelihood)},
      {"prior", "standard-normal"},
      {"binarisation", info.binarisation},
      {"objective", info.objective},
      {"data", info.data},
      {"data_md5", info.data_md5},
      {"seed", info.seed},
      {"epochs", info.epochs},
      {"validation_elbo", info.validation_elbo},
      {"libtorch_version",
       info.libtorch_version.empty() ? libtorch_version() : info.libtorch_version}};
  write_safetensors(path, {checkpoint.vae.named_tensors(), {{kKey, metadata.dump()}}});
}

}  // namespace crais
