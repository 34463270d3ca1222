#include "models/vae.h"

#include <cmath>
#include <limits>

#include "core/rng.h"
#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

const std::vector<std::pair<std::string, Activation::Kind>> kActivations = {
    {"tanh", Activation::kTanh},         {"elu", Activation::kElu},
    {"relu", Activation::kRelu},         {"leaky-relu", Activation::kLeakyRelu},
    {"softplus", Activation::kSoftplus}, {"sigmoid", Activation::kSigmoid},
    {"silu", Activation::kSilu},         {"gelu", Activation::kGelu}};

Mlp make_mlp(const std::vector<int64_t>& sizes, Activation activation, at::Generator& generator) {
  Mlp mlp;
  mlp.activation = activation;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const double bound = std::sqrt(6.0 / static_cast<double>(sizes[i] + sizes[i + 1]));
    mlp.layers.push_back({at::empty({sizes[i + 1], sizes[i]}).uniform_(-bound, bound, generator),
                          at::zeros({sizes[i + 1]})});
  }
  return mlp;
}

void name_layers(const std::string& prefix, const Mlp& mlp,
                 std::vector<std::pair<std::string, at::Tensor>>& named) {
  for (size_t i = 0; i < mlp.layers.size(); ++i) {
    // Activations take the odd places of the nn.Sequential.
    const std::string place = prefix + "." + std::to_string(2 * i);
    named.emplace_back(place + ".weight", mlp.layers[i].weight);
    named.emplace_back(place + ".bias", mlp.layers[i].bias);
  }
}

Mlp moved(Mlp mlp, at::Device device, at::ScalarType dtype) {
  for (auto& layer : mlp.layers)
    layer = {layer.weight.to(device, dtype), layer.bias.to(device, dtype)};
  return mlp;
}

}  // namespace

Activation parse_activation(const std::string& text) {
  Spec spec(text);
  for (const auto& [name, kind] : kActivations) {
    if (name != spec.name()) continue;
    Activation activation = kind;
    if (kind == Activation::kLeakyRelu)
      activation.leak = spec.number("slope", 0.0, 1.0, activation.leak);
    spec.finish();
    return activation;
  }
  throw argument_error("unknown activation '" + text + "'; choose from " + activation_names());
}

std::string activation_names() {
  std::vector<std::string> names;
  names.reserve(kActivations.size());
  for (const auto& [name, kind] : kActivations)
    names.push_back(kind == Activation::kLeakyRelu ? name + "[:SLOPE]" : name);
  return join(names);
}

std::string to_string(Activation activation) {
  for (const auto& [name, kind] : kActivations)
    if (kind == activation.kind)
      return activation == Activation(kind) ? name : name + ":" + shortest(activation.leak);
  throw Error(ErrorKind::kInternal, "unknown activation");
}

Likelihood parse_likelihood(const std::string& text) {
  Spec spec(text);
  Likelihood likelihood;
  if (spec.name() == "gaussian") {
    likelihood.family = Likelihood::Family::kGaussian;
    likelihood.noise_sd = spec.number("sd", 1e-6, 1e6);
  } else if (spec.name() != "bernoulli") {
    throw argument_error("unknown likelihood '" + text + "'; choose from bernoulli, gaussian:SD");
  }
  spec.finish();
  return likelihood;
}

DecoderLikelihood parse_decoder_likelihood(const std::string& text) {
  Spec spec(text);
  if (spec.name() != "bernoulli") return {parse_likelihood(text), {}};
  const std::string outputs = spec.word("outputs", "");
  spec.finish();
  if (outputs.empty()) return {};
  if (outputs != "probs" && outputs != "logits")
    throw argument_error("the outputs of bernoulli are probs or logits, not '" + outputs + "'");
  return {Likelihood{}, outputs == "probs"};
}

at::Tensor logits_of(const at::Tensor& probs) {
  const bool is_double = probs.scalar_type() == at::kDouble;
  const double eps =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return probs.clamp_min(std::numeric_limits<float>::min()).log() -
         at::log1p(-probs.clamp_max(1 - eps / 2));
}

std::string to_string(const Likelihood& likelihood) {
  if (likelihood.family == Likelihood::Family::kBernoulli) return "bernoulli";
  return "gaussian:" + shortest(likelihood.noise_sd);
}

at::Tensor Likelihood::log_prob(const at::Tensor& x, const at::Tensor& output) const {
  if (family == Family::kBernoulli) return (x * output - at::softplus(output)).sum(-1);
  const double log_scale = std::log(noise_sd) + 0.5 * std::log(2.0 * M_PI);
  return (-0.5 * ((x - output) / noise_sd).square() - log_scale).sum(-1);
}

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation.kind) {
    case Activation::kIdentity:
      return x;
    case Activation::kTanh:
      return at::tanh(x);
    case Activation::kElu:
      return at::elu(x);
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, activation.leak);
    case Activation::kSoftplus:
      return at::softplus(x);
    case Activation::kSigmoid:
      return at::sigmoid(x);
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGelu:
      return at::gelu(x);
  }
  throw Error(ErrorKind::kInternal, "unknown activation");
}

at::Tensor Mlp::forward(at::Tensor x) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    x = at::linear(x, layers[i].weight, layers[i].bias);
    if (i + 1 < layers.size()) x = activate(activation, x);
  }
  return x;
}

Vae::Posterior Vae::encode(const at::Tensor& x) const {
  TORCH_CHECK(!encoder.empty(), "this checkpoint has no encoder");
  const auto halves = encoder.forward(x).chunk(2, -1);
  return {halves[0], halves[1]};
}

std::vector<std::pair<std::string, at::Tensor>> Vae::named_tensors() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  name_layers("encoder", encoder, named);
  name_layers("decoder", decoder, named);
  return named;
}

Vae Vae::to(at::Device device, at::ScalarType dtype) const {
  return {architecture, moved(encoder, device, dtype), moved(decoder, device, dtype)};
}

Vae make_vae(const VaeArchitecture& architecture, uint64_t seed) {
  at::Generator generator = make_generator(derive_seed(seed, Purpose::kInitialise));
  std::vector<int64_t> sizes = {architecture.num_pixels()};
  sizes.insert(sizes.end(), architecture.hidden.begin(), architecture.hidden.end());
  sizes.push_back(2 * architecture.latent);
  Vae vae{architecture, make_mlp(sizes, architecture.activation, generator), {}};
  sizes.back() = architecture.latent;
  vae.decoder = make_mlp({sizes.rbegin(), sizes.rend()}, architecture.activation, generator);
  return vae;
}

}  // namespace crais
