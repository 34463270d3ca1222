// A model that is made of MLPs: weights and no code.
#pragma once

#include <string>

#include "models/model_manifest.h"

namespace crais {

/// Encoder and decoder of a manifest's `vae`, in plain ATen.
class MlpModel : public ManifestModel {
 public:
  /// Requires manifest.vae.
  MlpModel(ModelManifest manifest, std::string where);

  std::string evaluator() const override { return "aten"; }
  const Vae* vae() const override { return &vae_; }
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override;

 private:
  std::vector<at::Tensor> call(const std::string& function,
                               std::vector<at::Tensor> inputs) const override;

  Vae vae_;
};

}  // namespace crais
