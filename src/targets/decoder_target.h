/// @file
/// The posterior of a decoder of your own: log p(x) of images under it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

#include "models/likelihood.h"
#include "models/vae.h"
#include "targets/decoder_posterior.h"

namespace crais {

/// gamma_p(z) = N(z; 0, I) p(x_p | decode(z)) of P images: its normaliser is p(x_p). The decoder is
/// any function of latents, such as a torch::nn::Module's forward; the gradient is autograd's.
///
///     auto decode = [decoder](const at::Tensor& z) mutable { return decoder->forward(z); };
///     crais::DecoderTarget target({.decode = decode, .latent_dim = 20}, images);
///     crais::Result r = crais::estimate_log_normalizer(target);      // r.value[p] is log p(x_p)
///
/// A module is called from several threads at once where a run has several: it must not change
/// while it decodes (put it in eval mode).
class DecoderTarget : public DecoderPosterior {
 public:
  struct Options {
    /// Latents [N, latent_dim] -> logits (Bernoulli) or means (Gaussian), [N, ...].
    std::function<at::Tensor(const at::Tensor& z)> decode;
    int64_t latent_dim = 0;
    Likelihood likelihood = {};  ///< Bernoulli, or Gaussian with one noise
    /// Images [N, ...] -> mean and log-variance of q(z | x), [N, latent_dim] each; empty: no
    /// encoder.
    std::function<Vae::Posterior(const at::Tensor& x)> encode = {};
    /// Of simulated images, [P, latent_dim]: what each was simulated from; else undefined.
    at::Tensor latents = {};
  };

  /// `images` [P, ...], of the decoder's dtype and on its device.
  /// Throws Error kArgument if the decoder's output is not as large as an image.
  DecoderTarget(const Options& options, const at::Tensor& images);
};

}  // namespace crais
