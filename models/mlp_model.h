// A model that is made of MLPs: weights and no code.
#pragma once

#include <string>

#include "models/decoded_model.h"

namespace crais {

/// Encoder and decoder of a manifest's `vae`, in plain ATen.
class MlpModel : public DecodedModel {
 public:
  /// Requires manifest.vae.
  MlpModel(const ModelManifest& manifest, std::string where);

  std::string evaluator() const override { return "aten"; }
  const Vae* vae() const override { return &vae_; }

 private:
  at::Tensor decode(const at::Tensor& z) const override;
  Vae::Posterior posterior(const at::Tensor& x) const override;

  Vae vae_;
};

}  // namespace crais
