/// @file
/// The posterior of a user's decoder: log p(x) of images.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

#include "models/likelihood.h"
#include "models/vae.h"
#include "targets/decoder_posterior.h"

namespace crais {

/// gamma_p(z) = N(z; 0, I) p(x_p | decode(z)) of P images; its normaliser is p(x_p). The decoder is
/// any function of latents, such as the forward function of a torch::nn::Module. The gradient comes
/// from autograd.
///
///     auto decode = [decoder](const at::Tensor& z) mutable { return decoder->forward(z); };
///     crais::DecoderTarget target({.decode = decode, .latent_dim = 20}, images);
///     crais::Result r = crais::estimate_log_normalizer(target);      // r.value[p] is log p(x_p)
///
/// If a run has several threads, they call the module at once: it must not change while it decodes
/// (put it in eval mode).
class DecoderTarget : public DecoderPosterior {
 public:
  struct Options {
    /// Latents [N, latent_dim] -> logits (Bernoulli) or means (Gaussian), [N, ...].
    std::function<at::Tensor(const at::Tensor& z)> decode;
    int64_t latent_dim = 0;
    Likelihood likelihood = {};  ///< Bernoulli, or Gaussian with one noise
    /// Images [N, ...] -> mean and log-variance of q(z | x), [N, latent_dim] each; empty without an
    /// encoder.
    std::function<Vae::Posterior(const at::Tensor& x)> encode = {};
    /// For simulated images, the latents [P, latent_dim] that they were made from; else undefined.
    at::Tensor latents = {};
  };

  /// `images` [P, ...] have the decoder's dtype and device.
  /// Throws Error kArgument if the decoder's output is not as large as an image.
  DecoderTarget(const Options& options, const at::Tensor& images);
};

}  // namespace crais
