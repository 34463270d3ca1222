#include "models/vae.h"

#include <c10/core/GradMode.h>

#include <cmath>

#include "core/rng.h"

namespace crais {
namespace {

Network fresh_mlp(const std::vector<int64_t>& sizes, Activation activation,
                  at::Generator& generator) {
  std::vector<Layer> layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const double bound = std::sqrt(6.0 / static_cast<double>(sizes[i] + sizes[i + 1]));
    layers.push_back({at::empty({sizes[i + 1], sizes[i]}).uniform_(-bound, bound, generator),
                      at::zeros({sizes[i + 1]})});
  }
  return mlp(std::move(layers), activation);
}

void name_layers(const std::string& prefix, const Network& network,
                 std::vector<std::pair<std::string, at::Tensor>>& named) {
  for (size_t i = 0; i < network.layers.size(); ++i) {
    // Activations have the odd indices of the nn.Sequential.
    const std::string place = prefix + "." + std::to_string(2 * i);
    named.emplace_back(place + ".weight", network.layers[i].weight);
    named.emplace_back(place + ".bias", network.layers[i].bias);
  }
}

}  // namespace

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
  return {architecture, encoder.to(device, dtype), decoder.to(device, dtype)};
}

DecoderNetwork decoder_network(const Vae& vae) {
  return {vae.decoder, vae.architecture.likelihood};
}

Vae make_vae(const VaeArchitecture& architecture, uint64_t seed) {
  at::Generator generator = make_generator(derive_seed(seed, Purpose::kInitialise));
  std::vector<int64_t> sizes = {architecture.num_pixels()};
  sizes.insert(sizes.end(), architecture.hidden.begin(), architecture.hidden.end());
  sizes.push_back(2 * architecture.latent);
  Vae vae{architecture, fresh_mlp(sizes, architecture.activation, generator), {}};
  sizes.back() = architecture.latent;
  vae.decoder = fresh_mlp({sizes.rbegin(), sizes.rend()}, architecture.activation, generator);
  return vae;
}

Simulated simulate(const Vae& vae, int64_t count, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions options = vae.decoder.layers.front().weight.options();
  const at::Tensor z = at::empty({count, vae.architecture.latent}, options).normal_(0, 1, rng);
  const at::Tensor output = vae.decoder.forward(z);
  const Likelihood& likelihood = vae.architecture.likelihood;
  if (likelihood.is_of_logits())
    return {likelihood.draw(output, at::empty_like(output).uniform_(0, 1, rng)), z};
  return {output + likelihood.noise_sd * at::empty_like(output).normal_(0, 1, rng), z};
}

}  // namespace crais
