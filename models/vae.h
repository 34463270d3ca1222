/// @file
/// The variational autoencoder: an encoder and a decoder MLP as plain tensors.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/activation.h"

namespace crais {

/// One of `activation_names`, as "tanh" or "leaky-relu:0.2". Throws Error kArgument on another,
/// listing these.
Activation parse_activation(const std::string& text);
std::string activation_names();
std::string to_string(Activation activation);
at::Tensor activate(Activation activation, const at::Tensor& x);

struct LinearLayer {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]
};

/// Linear layers with an activation between them (none after the last).
struct Mlp {
  std::vector<LinearLayer> layers;
  Activation activation = Activation::kTanh;

  /// [..., in] -> [..., out].
  at::Tensor forward(at::Tensor x) const;
  bool empty() const { return layers.empty(); }
};

/// p(x | z): independent Bernoulli pixels given as logits, or Gaussian pixels with one fixed noise.
struct Likelihood {
  enum class Family { kBernoulli, kGaussian };
  Family family = Family::kBernoulli;
  double noise_sd = 1.0;  // Gaussian only

  /// log p(x | output) summed over pixels, in nats: [..., pixels] x [..., pixels] -> [...].
  /// Bernoulli: x may be any number in [0, 1].
  at::Tensor log_prob(const at::Tensor& x, const at::Tensor& output) const;
};

/// "bernoulli" or "gaussian:SD".
Likelihood parse_likelihood(const std::string& text);
std::string to_string(const Likelihood& likelihood);

/// What the outputs of a decoder from elsewhere mean.
struct DecoderLikelihood {
  Likelihood likelihood;
  /// Bernoulli: true for probabilities, as after a sigmoid; false for logits, even where all lie in
  /// [0, 1]; nothing for logits, of which that is not believed.
  std::optional<bool> probs;
};

/// As parse_likelihood, or "bernoulli:probs", "bernoulli:logits".
DecoderLikelihood parse_decoder_likelihood(const std::string& text);

/// The logits of probabilities; finite where a sigmoid was rounded to 0 or 1.
at::Tensor logits_of(const at::Tensor& probs);

struct VaeArchitecture {
  int64_t image_rows = 28;
  int64_t image_cols = 28;
  int64_t latent = 50;
  // Of the encoder; the decoder mirrors it. A foreign encoder (models/state_dict.h) may have
  // others.
  std::vector<int64_t> hidden = {200, 200};
  Activation activation = Activation::kTanh;
  Likelihood likelihood;

  int64_t num_pixels() const { return image_rows * image_cols; }
};

/// Encoder x -> (mean, log-variance) and decoder z -> output, with the prior N(0, I) on z.
struct Vae {
  VaeArchitecture architecture;
  Mlp encoder;  // num_pixels -> hidden -> 2 * latent; empty in a decoder-only checkpoint
  Mlp decoder;  // latent -> reversed hidden -> num_pixels

  struct Posterior {
    at::Tensor mean;     // [N, latent]
    at::Tensor log_var;  // [N, latent]
  };
  /// q(z | x) of binarised images [N, num_pixels]. Requires an encoder.
  Posterior encode(const at::Tensor& x) const;

  /// Every tensor under the name a PyTorch state_dict would give it: encoder and decoder as
  /// nn.Sequential(Linear, activation, Linear, ...), so "decoder.0.weight", "decoder.2.weight", ...
  std::vector<std::pair<std::string, at::Tensor>> named_tensors() const;

  /// A copy with every tensor moved.
  Vae to(at::Device device, at::ScalarType dtype) const;
};

/// Fresh weights: Glorot-uniform matrices, zero biases. `seed` decides them.
Vae make_vae(const VaeArchitecture& architecture, uint64_t seed);

}  // namespace crais
