#include "models/mlp_model.h"

#include <utility>

namespace crais {

MlpModel::MlpModel(const ModelManifest& manifest, std::string where)
    : DecodedModel(manifest, std::move(where), manifest.vae->architecture.likelihood),
      vae_(*manifest.vae) {}

at::Tensor MlpModel::decode(const at::Tensor& z) const { return vae_.decoder.forward(z); }

Vae::Posterior MlpModel::posterior(const at::Tensor& x) const { return vae_.encode(x.flatten(1)); }

}  // namespace crais
