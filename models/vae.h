/// @file
/// The variational autoencoder: an encoder and a decoder MLP as plain tensors.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/network.h"

namespace crais {

struct VaeArchitecture {
  int64_t image_rows = 28;
  int64_t image_cols = 28;
  int64_t latent = 50;
  // Sizes of the encoder; the decoder mirrors them.
  std::vector<int64_t> hidden = {200, 200};
  Activation activation = Activation::kTanh;
  Likelihood likelihood;

  int64_t num_pixels() const { return image_rows * image_cols; }
};

/// Encoder x -> (mean, log-variance) and decoder z -> output, with the prior N(0, I) on z.
struct Vae {
  VaeArchitecture architecture;
  Network encoder;  // num_pixels -> hidden -> 2 * latent; empty in a decoder-only checkpoint
  Network decoder;  // latent -> reversed hidden -> num_pixels

  struct Posterior {
    at::Tensor mean;     // [N, latent]
    at::Tensor log_var;  // [N, latent]
  };
  /// q(z | x) for binarised images [N, num_pixels]. Requires an encoder.
  Posterior encode(const at::Tensor& x) const;

  /// Every tensor with its name in a PyTorch state_dict: encoder and decoder as
  /// nn.Sequential(Linear, activation, Linear, ...), so "decoder.0.weight", "decoder.2.weight", ...
  std::vector<std::pair<std::string, at::Tensor>> named_tensors() const;

  /// A copy of the VAE with every tensor moved.
  Vae to(at::Device device, at::ScalarType dtype) const;
};

/// The decoder with the meaning of its outputs.
DecoderNetwork decoder_network(const Vae& vae);

/// New weights: Glorot-uniform matrices and zero biases, determined by `seed`.
Vae make_vae(const VaeArchitecture& architecture, uint64_t seed);

/// N images drawn from the model with the latents that made them, which are exact draws of their
/// posteriors.
struct Simulated {
  at::Tensor images;   // [N, pixels]
  at::Tensor latents;  // [N, latent]
};
Simulated simulate(const Vae& vae, int64_t count, at::Generator& rng);

}  // namespace crais
