#include "models/state_dict.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "core/spec.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

constexpr size_t kMaxLinears = 1000;
constexpr size_t kMaxListed = 24;

/// A linear layer of the file with its name, without ".weight".
struct NamedLinear {
  std::string name;
  at::Tensor weight;
  at::Tensor bias;  // undefined if there is none

  int64_t in() const { return weight.size(1); }
  int64_t out() const { return weight.size(0); }
};
using Linears = std::vector<NamedLinear>;

/// The layers of an encoder. The last layer gives mean and log-variance, or the last two give one
/// each.
struct EncoderLayers {
  Linears trunk, heads;
};

// --- names ---

/// The name on one line, quoted only if it needs quotes.
std::string plain(const std::string& name) {
  const std::string text = quoted(name);
  return text.substr(1, text.size() - 2);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view leading_number(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

/// Natural order: "fc2" before "fc10".
bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    std::string_view m = leading_number(a), n = leading_number(b);
    if (m.empty() || n.empty()) {
      if (a.front() != b.front()) return a.front() < b.front();
      m = n = a.substr(0, 1);
    }
    a.remove_prefix(m.size());
    b.remove_prefix(n.size());
    m.remove_prefix(std::min(m.find_first_not_of('0'), m.size()));
    n.remove_prefix(std::min(n.find_first_not_of('0'), n.size()));
    if (m.size() != n.size()) return m.size() < n.size();
    if (m != n) return m < n;
  }
  return a.size() < b.size();
}

std::string without_digits(std::string name) {
  name.erase(std::remove_if(name.begin(), name.end(), is_digit), name.end());
  return name;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

enum class Role { kNone, kEncoder, kDecoder };

/// True if `part` begins with `word` as a word: "decoder", "dec1" and "decoder_fc" begin with a
/// decoder word, "decay" does not.
bool begins_with_word(const std::string& part, std::string_view word) {
  return part.compare(0, word.size(), word) == 0 &&
         (part.size() == word.size() || part[word.size()] < 'a' || part[word.size()] > 'z');
}

Role role_of(const std::string& name) {
  Role role = Role::kNone;  // the last part of the name with a role decides
  for (const std::string& part : split(lower(name), '.')) {
    for (const char* word : {"encoder", "enc", "recognition", "inference"})
      if (begins_with_word(part, word)) role = Role::kEncoder;
    for (const char* word : {"decoder", "dec", "generator", "gen", "generative"})
      if (begins_with_word(part, word)) role = Role::kDecoder;
  }
  return role;
}

std::vector<std::string> names_of(const Linears& layers) {
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const NamedLinear& layer : layers) names.push_back(layer.name);
  return names;
}

/// The common beginning of all names, up to a dot.
std::string common_prefix(const std::vector<std::string>& names) {
  std::string prefix = names.front();
  for (const std::string& name : names) {
    const auto end = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
    prefix.erase(end, prefix.end());
  }
  return prefix.substr(0, prefix.rfind('.') + 1);  // npos + 1 is 0
}

// --- layers and chains of them ---

bool ends_with(const std::string& text, std::string_view ending) {
  return text.size() >= ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

std::string sizes_text(const NamedLinear& layer) {
  return std::to_string(layer.in()) + "->" + std::to_string(layer.out());
}

/// The layers as text: "fc1 784->400, fc2 400->40".
std::string listed(const Linears& layers) {
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(layers.size(), kMaxListed); ++i)
    words.push_back(plain(layers[i].name) + " " + sizes_text(layers[i]));
  if (layers.size() > kMaxListed)
    words.push_back(std::to_string(layers.size() - kMaxListed) + " more");
  return join(words);
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

bool is_chain(const Linears& layers) {
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    if (layers[i].out() != layers[i + 1].in()) return false;
  return !layers.empty();
}

bool is_encoder(const EncoderLayers& encoder, int64_t pixels, int64_t latent) {
  if (!encoder.trunk.empty() && (!is_chain(encoder.trunk) || encoder.trunk.front().in() != pixels))
    return false;
  const int64_t width = encoder.trunk.empty() ? pixels : encoder.trunk.back().out();
  const auto heads = static_cast<int64_t>(encoder.heads.size());
  return std::all_of(encoder.heads.begin(), encoder.heads.end(), [&](const NamedLinear& head) {
    return head.in() == width && head.out() * heads == 2 * latent;
  });
}

/// An encoder whose head is the last layer or whose heads are the last two, whichever fits.
std::optional<EncoderLayers> ordered_encoder(const Linears& layers, int64_t pixels,
                                             int64_t latent) {
  for (const std::ptrdiff_t heads : {1, 2}) {
    if (layers.size() < static_cast<size_t>(heads)) continue;
    const EncoderLayers encoder{{layers.begin(), layers.end() - heads},
                                {layers.end() - heads, layers.end()}};
    if (is_encoder(encoder, pixels, latent)) return encoder;
  }
  return {};
}

/// The possible orders of named layers, most likely first: natural order, 2 before 10; fc21 before
/// fc3, as the second layer in two parts; the order of the file.
std::array<Linears, 3> orders_of(const Linears& layers) {
  std::array<Linears, 3> orders{layers, layers, layers};
  std::stable_sort(orders[0].begin(), orders[0].end(),
                   [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  std::stable_sort(orders[1].begin(), orders[1].end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  return orders;
}

/// The layers in the first order in which they form a chain; unchanged if there is none.
Linears as_chain(const Linears& layers) {
  const auto orders = orders_of(layers);
  const auto fits = std::find_if(orders.begin(), orders.end(), is_chain);
  return fits == orders.end() ? layers : *fits;
}

std::optional<EncoderLayers> as_encoder(const Linears& layers, int64_t pixels, int64_t latent) {
  for (const Linears& order : orders_of(layers))
    if (auto encoder = ordered_encoder(order, pixels, latent)) return encoder;
  return {};
}

/// True if the order is certain. Two layers of equal shape could be exchanged: only numbers in
/// their names decide.
bool order_is_certain(const Linears& layers) {
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (layers[i].weight.sizes() == layers[j].weight.sizes() &&
          without_digits(layers[i].name) != without_digits(layers[j].name))
        return false;
  return true;
}

/// The meaning of a head's name: 0 for the mean, 1 for the log-variance. Returns nothing if the
/// name does not say, or names a standard deviation.
std::optional<int> head_meant(const std::string& name) {
  const std::string text = lower(name);
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("var")) return 1;
  if (has("mu") || has("mean") || has("loc")) return 0;
  return {};
}

/// Puts the head of the mean first. Returns false if the names do not decide.
bool order_heads(Linears& heads) {
  if (heads.size() < 2) return true;
  const std::string common = common_prefix(names_of(heads));
  std::array<std::optional<int>, 2> meant;
  for (size_t i = 0; i < 2; ++i) meant[i] = head_meant(heads[i].name.substr(common.size()));
  if (!meant[0] && !meant[1])
    return without_digits(heads[0].name) == without_digits(heads[1].name);  // fc21, fc22
  if (!meant[0] || !meant[1] || *meant[0] == *meant[1]) return false;
  if (*meant[0] == 1) std::swap(heads[0], heads[1]);
  return true;
}

using Division = std::pair<EncoderLayers, Linears>;

/// All ways to cut the layers, in this order, into an optional encoder and a decoder.
std::vector<Division> divisions(const Linears& layers) {
  std::vector<Division> ways;
  for (auto middle = layers.begin(); middle != layers.end(); ++middle) {
    const Linears before(layers.begin(), middle), after(middle, layers.end());
    // An autoencoder is a chain from pixels to pixels, but it is not a decoder.
    if (!is_chain(after) || after.front().in() >= after.back().out()) continue;
    const auto encoder = ordered_encoder(before, after.back().out(), after.front().in());
    if (encoder || before.empty()) ways.emplace_back(encoder.value_or(EncoderLayers{}), after);
  }
  return ways;
}

// --- recognition ---

class Recogniser {
 public:
  Recogniser(const StateDict& state, const StateDictOptions& options)
      : state_(state), options_(options), layers_(linear_layers()) {}

  RecognisedVae run() {
    check_linear();
    architecture_.activation = activation();
    architecture_.likelihood = likelihood();
    if (layers_.empty())
      throw data_error(state_.source + ": has no linear layers (tensors NAME.weight of two " +
                       "dimensions) among its " + std::to_string(state_.tensors.size()) +
                       " tensors");
    find();
    describe_images();
    RecognisedVae result;
    result.vae = {architecture_, mlp(encoder_layers(), architecture_.activation),
                  mlp(layers_of(decoder_), architecture_.activation)};
    result.decoder = names_of(decoder_);
    result.encoder = names_of(encoder_.trunk);
    for (const NamedLinear& head : encoder_.heads) result.encoder.push_back(head.name);
    result.unused = unused();
    return result;
  }

 private:
  Error unclear(const std::string& what) const {
    return argument_error(state_.source + ": " + what + "; its linear layers are " +
                          listed(layers_) + "; name them in their order, as in " +
                          "`decoder` fc3,fc4 `encoder` fc1,fc21+fc22 " +
                          "(fc21 the mean, fc22 the log-variance)");
  }

  /// Checks that all layers are linear, unless the user has named the layers of the decoder.
  void check_linear() const {
    if (!options_.decoder_layers.empty()) return;
    for (const auto& [name, tensor] : state_.tensors)
      if (tensor.dim() >= 3 && tensor.dim() <= 5)
        throw data_error(state_.source + ": tensor " + plain(name) + " of " +
                         std::to_string(tensor.dim()) +
                         " dimensions is a convolution's; export the model from Python, by "
                         "crais.export(\"model.pt2\", decoder=..., likelihood=...), or name the "
                         "linear layers of an MLP (`decoder`)");
  }

  // --- facts that a state_dict cannot state ---

  std::string option_or_metadata(const std::string& option, const char* key) const {
    if (!option.empty()) return option;
    const auto entry = state_.metadata.find(key);
    return entry == state_.metadata.end() ? "" : entry->second;
  }
  Activation activation() const {
    const std::string name = option_or_metadata(options_.activation, "activation");
    if (name.empty())
      throw argument_error(state_.source +
                           ": a state_dict does not name the activation between its layers; give " +
                           "`activation`, one of " + activation_names());
    return parse_activation(name);
  }
  Likelihood likelihood() const {
    const std::string text = option_or_metadata(options_.likelihood, "likelihood");
    return text.empty() ? Likelihood{} : parse_decoder_likelihood(text).likelihood;
  }

  // --- the layers of the file ---

  Linears linear_layers() const {
    constexpr std::string_view kEnding = ".weight";
    std::map<std::string, at::Tensor> biases;
    for (const auto& [name, tensor] : state_.tensors)
      if (ends_with(name, ".bias")) biases[name] = tensor;
    Linears layers;
    for (const auto& [name, tensor] : state_.tensors) {
      if (!ends_with(name, kEnding) || tensor.dim() != 2 || tensor.numel() == 0) continue;
      const std::string layer = name.substr(0, name.size() - kEnding.size());
      const auto bias = biases.find(layer + ".bias");
      layers.push_back({layer, tensor, bias == biases.end() ? at::Tensor() : bias->second});
    }
    if (layers.size() > kMaxLinears)
      throw data_error(state_.source + ": has " + std::to_string(layers.size()) +
                       " linear layers; at most " + std::to_string(kMaxLinears) + " are read");
    return layers;
  }

  const NamedLinear& layer_called(const std::string& name, const char* option) const {
    const NamedLinear* found = nullptr;
    for (const NamedLinear& layer : layers_) {
      if (layer.name == name) return layer;
      if (!ends_with(layer.name, "." + name)) continue;
      if (found)
        throw argument_error(state_.source + ": `" + option + "`: '" + name + "' may be " +
                             plain(found->name) + " or " + plain(layer.name));
      found = &layer;
    }
    if (!found)
      throw argument_error(state_.source + ": `" + option + "`: it has no linear layer '" + name +
                           "'; those it has are " + listed(layers_));
    return *found;
  }
  Linears layers_called(const std::vector<std::string>& names, const char* option) const {
    Linears layers;
    for (const std::string& name : names) {
      layers.push_back(layer_called(name, option));
      for (size_t i = 0; i + 1 < layers.size(); ++i)
        if (layers[i].name == layers.back().name)
          throw argument_error(state_.source + ": `" + option + "` names '" + name + "' twice");
    }
    return layers;
  }

  /// The layers of a role that are not yet used.
  Linears with_role(Role role) const {
    std::set<std::string> used_names;
    for (const Linears* used : {&decoder_, &encoder_.trunk, &encoder_.heads})
      for (const NamedLinear& layer : *used) used_names.insert(layer.name);
    Linears unused;
    for (const NamedLinear& layer : layers_)
      if (role_of(layer.name) == role && used_names.count(layer.name) == 0) unused.push_back(layer);
    return unused;
  }

  // --- the roles of the layers ---

  void find() {
    if (!options_.decoder_layers.empty()) {
      decoder_ = layers_called(split(options_.decoder_layers, ','), "decoder");
      check_fit(decoder_);
      return find_encoder();
    }
    decoder_ = as_chain(with_role(Role::kDecoder));
    if (decoder_.empty()) return find_without_roles();
    check_fit(decoder_);
    check_order(decoder_, "the decoder");
    check_nothing_left("", Role::kDecoder);
    find_encoder();
  }

  void find_encoder() {
    if (!options_.encoder_layers.empty()) return find_named_encoder();
    // Trunk and heads share a prefix, or the heads (or all layers) have their own names.
    const Linears own = with_role(Role::kEncoder), others = with_role(Role::kNone);
    Linears both = own;
    both.insert(both.end(), others.begin(), others.end());
    auto encoder = as_encoder(both, pixels(), latent());
    if (!encoder) encoder = as_encoder(own, pixels(), latent());
    if (!encoder) return;  // `describe` reports it; a decoder is enough
    check_order(encoder->trunk, "the encoder");
    check_heads(encoder->heads);
    encoder_ = *encoder;
  }

  void find_named_encoder() {
    if (options_.encoder_layers == "none") return;
    std::vector<std::string> names = split(options_.encoder_layers, ',');
    const std::vector<std::string> heads = split(names.back(), '+');
    names.pop_back();
    EncoderLayers named{layers_called(names, "encoder"), layers_called(heads, "encoder")};
    if (heads.size() > 2 || !is_encoder(named, pixels(), latent()))
      throw unclear("`encoder` " + options_.encoder_layers + " do not lead from " +
                    std::to_string(pixels()) + " pixels to mean and log-variance of " +
                    std::to_string(latent()) + " latents, as the decoder needs");
    encoder_ = named;
  }

  void find_without_roles() {
    if (!options_.encoder_layers.empty()) throw unclear("`encoder` needs `decoder` beside it");
    std::vector<Division> ways;
    for (const Linears& order : orders_of(layers_))
      if (ways.empty()) ways = divisions(order);
    if (ways.size() != 1)
      throw unclear(ways.empty() ? "no encoder and decoder can be told apart"
                                 : "encoder and decoder can be told apart in several ways");
    std::tie(encoder_, decoder_) = ways.front();
    check_order(decoder_, "the decoder");
    check_order(encoder_.trunk, "the encoder");
    check_heads(encoder_.heads);
    check_nothing_left(common_prefix(names_of(layers_)), Role::kNone);
  }

  void check_order(const Linears& layers, const std::string& what) const {
    if (!order_is_certain(layers))
      throw unclear("layers of one shape in " + what + " have names without an order");
  }
  void check_heads(Linears& heads) const {
    if (!order_heads(heads))
      throw unclear("which head gives the mean and which the log-variance cannot be told from " +
                    plain(heads[0].name) + " and " + plain(heads[1].name));
  }
  void check_fit(const Linears& layers) const {
    for (size_t i = 0; i + 1 < layers.size(); ++i)
      if (layers[i].out() != layers[i + 1].in())
        throw unclear("the decoder's layers do not fit: " + plain(layers[i].name) + " gives " +
                      std::to_string(layers[i].out()) + " numbers, " + plain(layers[i + 1].name) +
                      " takes " + std::to_string(layers[i + 1].in()));
  }
  /// Checks that no tensors are left beside the decoder: a normalisation, for example, would change
  /// its result.
  void check_nothing_left(const std::string& prefix, Role role) const {
    for (const std::string& name : unused())
      if (name.compare(0, prefix.size(), prefix) == 0 && role_of(name) == role)
        throw unclear("tensor " + plain(name) +
                      " has no place in an MLP of linear layers and activations");
  }

  // --- the result ---

  int64_t pixels() const { return decoder_.back().out(); }
  int64_t latent() const { return decoder_.front().in(); }

  void describe_images() {
    architecture_.latent = latent();
    architecture_.hidden.clear();
    for (size_t i = decoder_.size() - 1; i > 0; --i)
      architecture_.hidden.push_back(decoder_[i].in());
    int64_t rows = options_.image_rows, cols = options_.image_cols;
    if (rows == 0 && cols == 0)
      rows = cols = std::llround(std::sqrt(static_cast<double>(pixels())));
    int64_t product = 0;
    if (rows < 1 || cols < 1 || __builtin_mul_overflow(rows, cols, &product) || product != pixels())
      throw argument_error(state_.source + ": the decoder gives " + std::to_string(pixels()) +
                           " pixels, which are not " + std::to_string(rows) + " x " +
                           std::to_string(cols) + "; give `image_shape`");
    architecture_.image_rows = rows;
    architecture_.image_cols = cols;
  }

  Layer linear_of(const NamedLinear& layer) const {
    const std::string place = state_.source + ": tensor " + quoted(layer.name + ".weight");
    const at::Tensor weight = checked_floats(layer.weight, place);
    if (!layer.bias.defined()) return {weight, at::zeros({layer.out()})};
    const std::string bias_place = state_.source + ": tensor " + quoted(layer.name + ".bias");
    if (layer.bias.dim() != 1 || layer.bias.size(0) != layer.out())
      throw data_error(bias_place + " is not a vector of " + std::to_string(layer.out()) +
                       " numbers, as its weight needs");
    return {weight, checked_floats(layer.bias, bias_place)};
  }
  std::vector<Layer> layers_of(const Linears& linears) const {
    std::vector<Layer> layers;
    for (const NamedLinear& linear : linears) layers.push_back(linear_of(linear));
    return layers;
  }
  /// The layers of the encoder. Two heads become the halves of one layer.
  std::vector<Layer> encoder_layers() const {
    Linears linears = encoder_.trunk;
    linears.insert(linears.end(), encoder_.heads.begin(), encoder_.heads.end());
    std::vector<Layer> layers = layers_of(linears);
    if (encoder_.heads.size() == 2) {
      const Layer log_variance = layers.back();
      layers.pop_back();
      Layer& last = layers.back();
      last = {at::cat({last.weight, log_variance.weight}), at::cat({last.bias, log_variance.bias})};
    }
    return layers;
  }

  std::vector<std::string> unused() const {
    std::set<std::string> used;
    for (const Linears* some : {&decoder_, &encoder_.trunk, &encoder_.heads})
      for (const NamedLinear& layer : *some)
        used.insert({layer.name + ".weight", layer.name + ".bias"});
    std::vector<std::string> names;
    for (const auto& [name, tensor] : state_.tensors)
      if (used.count(name) == 0) names.push_back(name);
    return names;
  }

  const StateDict& state_;
  const StateDictOptions& options_;
  Linears layers_;
  Linears decoder_;
  EncoderLayers encoder_;
  VaeArchitecture architecture_;
};

// --- description ---

/// The sizes of the layers: "20 -> 400 -> 784".
std::string widths(const Network& mlp) {
  std::string text = std::to_string(mlp.layers.front().weight.size(1));
  for (const Layer& layer : mlp.layers) text += " -> " + std::to_string(layer.weight.size(0));
  return text;
}

std::string plain_list(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) words.push_back(plain(names[i]));
  if (names.size() > kMaxListed)
    words.push_back(std::to_string(names.size() - kMaxListed) + " more");
  return join(words);
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

std::string RecognisedVae::describe() const {
  const VaeArchitecture& architecture = vae.architecture;
  const std::string between = ", " + to_string(architecture.activation) + " between\n";
  std::string text = "decoder     " + widths(vae.decoder) + " (" + plain_list(decoder) + ")" +
                     between + "encoder     ";
  if (vae.encoder.empty()) {
    text += "none was recognised\n";
  } else {
    const bool two_heads = encoder.size() > vae.encoder.layers.size();
    const std::vector<std::string> last(encoder.end() - (two_heads ? 2 : 1), encoder.end());
    text +=
        widths(vae.encoder) + " (" + plain_list(encoder) + ")" + between + "            " +
        (two_heads ? plain(last[0]) + " gives the mean, " + plain(last[1]) + " the log-variance\n"
                   : plain(last[0]) + " gives the mean, then the log-variance\n");
  }
  text += "likelihood  " + to_string(architecture.likelihood) +
          (architecture.likelihood.is_of_logits() ? ": the outputs are logits\n"
                                                  : ": the outputs are means\n");
  text += "images      " + std::to_string(architecture.image_rows) + " x " +
          std::to_string(architecture.image_cols) + "\n";
  if (!unused.empty()) text += "not used    " + plain_list(unused) + "\n";
  return text;
}

RecognisedVae vae_from_state_dict(const StateDict& state, const StateDictOptions& options) {
  return Recogniser(state, options).run();
}

}  // namespace crais
