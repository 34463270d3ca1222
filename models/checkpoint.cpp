#include "models/checkpoint.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/binarisation.h"
#include "io/json.h"
#include "models/file_fields.h"
#include "models/model_file.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr const char* kKey = "crais";
constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMaxSize = 1 << 20;  // of a layer or of an image's side
constexpr size_t kMaxLayers = 64;

VaeArchitecture read_architecture(const FileFields& fields) {
  const FileFields shape = fields.object("architecture");
  return {.image_rows = shape.integer("image_rows", 1, kMaxSize),
          .image_cols = shape.integer("image_cols", 1, kMaxSize),
          .latent = shape.integer("latent", 1, kMaxSize),
          .hidden = shape.integers("hidden", 0, kMaxLayers, 1, kMaxSize),
          .activation = shape.parsed("activation", parse_activation),
          .likelihood = fields.parsed("likelihood", parse_likelihood)};
}

CheckpointInfo read_info(const FileFields& fields) {
  return {.binarisation = to_string(fields.parsed("binarisation", parse_binarisation)),
          .objective = fields.text("objective"),
          .data = fields.text("data"),
          .data_md5 = fields.text("data_md5"),
          .seed = fields.natural("seed"),
          .epochs = fields.integer("epochs", 0, std::numeric_limits<int64_t>::max()),
          .validation_elbo = fields.number("validation_elbo"),
          .libtorch_version = fields.text("libtorch_version")};
}

/// Takes the layers of an nn.Sequential out of `content`. A checkpoint must hold no other tensors.
Network take_network(SafeTensors& content, const std::string& prefix,
                     const std::vector<int64_t>& sizes, Activation activation,
                     const std::string& where) {
  const auto take = [&](const std::string& name, at::IntArrayRef shape) {
    const at::Tensor tensor = tensor_of(content, name, shape, where);
    std::erase_if(content.tensors, [&](const auto& named) { return named.first == name; });
    return tensor;
  };
  std::vector<Layer> layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::string place = prefix + "." + std::to_string(2 * i);
    const at::Tensor weight = take(place + ".weight", {sizes[i + 1], sizes[i]});
    layers.push_back({weight, take(place + ".bias", {sizes[i + 1]})});
  }
  return mlp(std::move(layers), activation);
}

Vae read_vae(SafeTensors content, const VaeArchitecture& architecture, const std::string& where) {
  Vae vae{architecture, {}, {}};
  std::vector<int64_t> sizes = {architecture.latent};
  sizes.insert(sizes.end(), architecture.hidden.rbegin(), architecture.hidden.rend());
  sizes.push_back(architecture.num_pixels());
  vae.decoder = take_network(content, "decoder", sizes, architecture.activation, where);
  if (std::any_of(content.tensors.begin(), content.tensors.end(),
                  [](const auto& named) { return named.first.starts_with("encoder."); })) {
    sizes.front() = 2 * architecture.latent;
    vae.encoder = take_network(content, "encoder", {sizes.rbegin(), sizes.rend()},
                               architecture.activation, where);
  }
  if (content.tensors.empty()) return vae;
  const std::string& left = content.tensors.front().first;
  throw data_error(where, ": tensor ", quoted(left),
                   " has no place in the architecture that the file describes");
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  return parse_checkpoint(read_file(path), path.string());
}

Checkpoint parse_checkpoint(const std::string& bytes, const std::string& file) {
  const SafeTensors content = parse_safetensors(bytes, file);
  const auto metadata = content.metadata.find(kKey);
  if (metadata == content.metadata.end())
    throw data_error(file, ": not a checkpoint of train-vae (no \"crais\" in its metadata)",
                     kModelInPython);
  const std::string where = file + ": metadata";
  const json object = parse_json(metadata->second, where);
  const FileFields fields(object, where);
  if (fields.natural("format_version") != kFormatVersion)
    throw data_error(file, ": checkpoint format version ", fields.at("format_version").dump(),
                     ", this program reads version ", kFormatVersion);
  if (fields.text("prior") != "standard-normal")
    throw data_error(file, ": prior ", quoted(fields.text("prior")),
                     ", expected \"standard-normal\"");
  return {read_vae(content, read_architecture(fields), file), read_info(fields), sha256(bytes)};
}

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  const VaeArchitecture& architecture = checkpoint.vae.architecture;
  const CheckpointInfo& info = checkpoint.info;
  const json metadata = {
      {"format_version", kFormatVersion},
      {"architecture",
       {{"image_rows", architecture.image_rows},
        {"image_cols", architecture.image_cols},
        {"latent", architecture.latent},
        {"hidden", architecture.hidden},
        {"activation", to_string(architecture.activation)}}},
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
