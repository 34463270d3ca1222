// A model that is a decoder under N(0, I), with one of the likelihoods that need no code.
#pragma once

#include <string>
#include <vector>

#include "models/model_manifest.h"

namespace crais {

/// The Fisher information of each entry of a decoder's output, [B,M]: of logits, or of means.
at::Tensor fisher_weights(const Likelihood& likelihood, const at::Tensor& output);

/// Everything but the decoder and the encoder: the joint density, Fisher weights, exact draws.
class DecodedModel : public ManifestModel {
 public:
  /// By autograd, through the decoder.
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override;

 protected:
  DecodedModel(ModelManifest manifest, std::string where, const Likelihood& likelihood);

 private:
  /// Latents [B,D] -> logits (Bernoulli) or means (Gaussian), [B, ...]. Differentiable.
  virtual at::Tensor decode(const at::Tensor& z) const = 0;
  /// q(z | x) of data [B, ...], where the description has "encode".
  virtual Vae::Posterior posterior(const at::Tensor& x) const = 0;

  std::vector<at::Tensor> call(const std::string& function,
                               std::vector<at::Tensor> inputs) const final;

  Likelihood likelihood_;
};

}  // namespace crais
