#include "models/state_dict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/spec.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr size_t kMaxListed = 24;
constexpr std::string_view kWeight = ".weight", kBias = ".bias";

/// The name on one line, without quotes where it needs none.
std::string plain(const std::string& name) {
  const std::string text = quoted(name);
  return text.substr(1, text.size() - 2);
}

std::string listed(std::vector<std::string> words) {
  if (words.size() > kMaxListed) {
    const std::string more = std::to_string(words.size() - kMaxListed) + " more";
    words.resize(kMaxListed);
    words.push_back(more);
  }
  return join(words);
}

std::string listed_names(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(plain(name));
  return listed(words);
}

at::Tensor checked_floats(const at::Tensor& tensor, const std::string& place) {
  if (!at::isFloatingType(tensor.scalar_type()))
    throw data_error(place + " is of type " + at::toString(tensor.scalar_type()) +
                     ", expected floating-point numbers");
  at::Tensor floats = tensor.to(at::kFloat).contiguous();
  if (!at::isfinite(floats).all().item<bool>())
    throw data_error(place + " holds values that float32 does not (NaN, infinite or too large)");
  return floats;
}

/// The linear layers of a state_dict: its tensors NAME.weight of two dimensions.
class LinearLayers {
 public:
  explicit LinearLayers(const StateDict& state) : state_(state) {
    for (const auto& [name, tensor] : state.tensors)
      if (name.ends_with(kWeight) && tensor.dim() == 2 && tensor.numel() > 0)
        names_.push_back(name.substr(0, name.size() - kWeight.size()));
  }

  /// That or the one that ends so after a dot. `option` names it in errors.
  std::string full_name(const std::string& name, const char* option) const {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return name;
    std::vector<std::string> found;
    for (const std::string& known : names_)
      if (known.ends_with("." + name)) found.push_back(known);
    if (found.size() > 1)
      throw error("`" + std::string(option) + "`: '" + name + "' may be " + plain(found[0]) +
                  " or " + plain(found[1]));
    if (found.empty())
      throw error("`" + std::string(option) + "`: it has no linear layer '" + name +
                  "'; those it has are " + all());
    return found.front();
  }

  /// In float32, a bias of zeros where there is none.
  Layer layer(const std::string& full_name) const {
    const std::string weight_name = full_name + std::string(kWeight),
                      bias_name = full_name + std::string(kBias);
    const at::Tensor weight = checked_floats(*state_.find(weight_name), place(weight_name));
    const at::Tensor* bias = state_.find(bias_name);
    if (bias == nullptr) return {weight, at::zeros({weight.size(0)})};
    if (bias->dim() != 1 || bias->size(0) != weight.size(0))
      throw data_error(place(bias_name) + " is not a vector of " + std::to_string(weight.size(0)) +
                       " numbers, as its weight needs");
    return {weight, checked_floats(*bias, place(bias_name))};
  }

  /// "fc1 784->400, fc2 400->40".
  std::string all() const {
    std::vector<std::string> words;
    for (const std::string& name : names_) {
      const at::Tensor& weight = *state_.find(name + std::string(kWeight));
      words.push_back(plain(name) + " " + std::to_string(weight.size(1)) + "->" +
                      std::to_string(weight.size(0)));
    }
    return words.empty() ? "none" : listed(words);
  }

  Error error(const std::string& what) const { return argument_error(state_.source + ": " + what); }

 private:
  std::string place(const std::string& tensor) const {
    return state_.source + ": tensor " + quoted(tensor);
  }

  const StateDict& state_;
  std::vector<std::string> names_;
};

/// The first layer that does not take what the one before it gives; the end where all do.
std::vector<Layer>::const_iterator misfit(const std::vector<Layer>& layers) {
  const auto found =
      std::adjacent_find(layers.begin(), layers.end(),
                         [](const Layer& a, const Layer& b) { return a.outputs() != b.inputs(); });
  return found == layers.end() ? found : found + 1;
}

/// Names of an option, and the layers that they mean.
struct Chain {
  std::vector<std::string> names;
  std::vector<Layer> layers;

  Chain(const LinearLayers& all, const std::vector<std::string>& given, const char* option) {
    for (const std::string& name : given) {
      names.push_back(all.full_name(name, option));
      layers.push_back(all.layer(names.back()));
    }
  }
};

Chain decoder_of(const LinearLayers& all, const std::string& given) {
  Chain chain(all, split(given, ','), "decoder");
  if (const auto wrong = misfit(chain.layers); wrong != chain.layers.end()) {
    const auto i = static_cast<size_t>(wrong - chain.layers.begin());
    throw all.error("the decoder's layers do not fit: " + plain(chain.names[i - 1]) + " gives " +
                    std::to_string(chain.layers[i - 1].outputs()) + " numbers, " +
                    plain(chain.names[i]) + " takes " + std::to_string(wrong->inputs()) +
                    "; its linear layers are " + all.all());
  }
  return chain;
}

/// Two heads become the halves of one layer.
Chain encoder_of(const LinearLayers& all, const std::string& given, int64_t pixels,
                 int64_t latent) {
  std::vector<std::string> names = split(given, ',');
  const std::vector<std::string> last = split(names.back(), '+');
  names.pop_back();
  Chain chain(all, names, "encoder");
  const Chain heads(all, last, "encoder");
  const Layer &mean = heads.layers.front(), &log_var = heads.layers.back();
  const bool are_alike = last.size() <= 2 && mean.weight.sizes() == log_var.weight.sizes();
  chain.names.insert(chain.names.end(), heads.names.begin(), heads.names.end());
  chain.layers.push_back(
      last.size() == 2 && are_alike
          ? Layer{at::cat({mean.weight, log_var.weight}), at::cat({mean.bias, log_var.bias})}
          : mean);
  const std::vector<Layer>& layers = chain.layers;
  if (!are_alike || misfit(layers) != layers.end() || layers.front().inputs() != pixels ||
      layers.back().outputs() != 2 * latent)
    throw all.error("`encoder` " + given + " do not lead from " + std::to_string(pixels) +
                    " pixels to mean and log-variance of " + std::to_string(latent) +
                    " latents, as the decoder needs; its linear layers are " + all.all());
  return chain;
}

void set_image_shape(VaeArchitecture& architecture, const StateDictOptions& options, int64_t pixels,
                     const LinearLayers& all) {
  int64_t rows = options.image_rows, cols = options.image_cols, product = 0;
  if (rows == 0 && cols == 0) rows = cols = std::llround(std::sqrt(static_cast<double>(pixels)));
  if (rows < 1 || cols < 1 || __builtin_mul_overflow(rows, cols, &product) || product != pixels)
    throw all.error("the decoder gives " + std::to_string(pixels) + " pixels, which are not " +
                    std::to_string(rows) + " x " + std::to_string(cols) + "; give `image_shape`");
  architecture.image_rows = rows;
  architecture.image_cols = cols;
}

/// "20 -> 400 -> 784 (fc3, fc4), relu between".
std::string description(const Network& mlp, const std::vector<std::string>& names,
                        const std::string& activation) {
  std::string text = std::to_string(mlp.layers.front().inputs());
  for (const Layer& layer : mlp.layers) text += " -> " + std::to_string(layer.outputs());
  return text + " (" + listed_names(names) + "), " + activation + " between\n";
}

}  // namespace

StateDict read_state_dict(const ModelFile& file) {
  const std::string name = file.where();
  StateDict state{{}, name, file.sha256()};
  if (is_torch_file(file.bytes, name))
    state.tensors = parse_torch_file(file.bytes, name);
  else if (is_safetensors(file.bytes))
    static_cast<SafeTensors&>(state) = parse_safetensors(file.bytes, name);
  else
    throw data_error(name + ": neither a safetensors file nor one of torch.save");
  return state;
}

std::string ForeignVae::describe() const {
  const VaeArchitecture& architecture = vae.architecture;
  const std::string activation = to_string(architecture.activation);
  std::string text = "decoder     " + description(vae.decoder, decoder, activation);
  text += "encoder     " +
          (vae.encoder.empty() ? "none\n" : description(vae.encoder, encoder, activation));
  text += "likelihood  " + to_string(architecture.likelihood) +
          (architecture.likelihood.is_of_logits() ? ": the outputs are logits\n"
                                                  : ": the outputs are means\n");
  text += "images      " + std::to_string(architecture.image_rows) + " x " +
          std::to_string(architecture.image_cols) + "\n";
  if (!unused.empty()) text += "not used    " + listed_names(unused) + "\n";
  return text;
}

ForeignVae vae_from_state_dict(const StateDict& state, const StateDictOptions& options) {
  const LinearLayers all(state);
  if (options.decoder_layers.empty())
    throw all.error(
        "a state_dict does not say which layers decode; name its linear ones in their "
        "order, as in `decoder` fc3,fc4 `encoder` fc1,fc21+fc22 (fc21 the mean, fc22 "
        "the log-variance); they are " +
        all.all() + "; of a model that has others crais.export writes a file");
  ForeignVae found;
  VaeArchitecture& architecture = found.vae.architecture;
  if (options.activation.empty())
    throw all.error(
        "a state_dict does not say what stands between its layers; give "
        "`activation`, one of " +
        activation_names());
  architecture.activation = parse_activation(options.activation);
  if (!options.likelihood.empty())
    architecture.likelihood = parse_decoder_likelihood(options.likelihood).likelihood;
  Chain decoder = decoder_of(all, options.decoder_layers);
  const int64_t pixels = decoder.layers.back().outputs();
  architecture.latent = decoder.layers.front().inputs();
  architecture.hidden.clear();
  for (size_t i = decoder.layers.size(); --i > 0;)
    architecture.hidden.push_back(decoder.layers[i].inputs());
  set_image_shape(architecture, options, pixels, all);
  found.vae.decoder = mlp(decoder.layers, architecture.activation);
  found.decoder = decoder.names;
  if (!options.encoder_layers.empty()) {
    const Chain encoder = encoder_of(all, options.encoder_layers, pixels, architecture.latent);
    found.vae.encoder = mlp(encoder.layers, architecture.activation);
    found.encoder = encoder.names;
  }
  std::set<std::string> used;
  for (const auto* names : {&found.decoder, &found.encoder})
    for (const std::string& name : *names)
      used.insert({name + std::string(kWeight), name + std::string(kBias)});
  for (const auto& [name, tensor] : state.tensors)
    if (used.count(name) == 0) found.unused.push_back(name);
  return found;
}

}  // namespace crais
