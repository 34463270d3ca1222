// A model that is weights and no code: an MLP decoder under N(0, I), perhaps with an encoder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/model_manifest.h"

namespace crais {

/// By hand in ATen, on any device and of any floating type.
class NetworkModel : public ManifestModel {
 public:
  /// Of a manifest's `vae`.
  NetworkModel(ModelManifest manifest, std::string where, at::Device device, at::ScalarType dtype);

  std::string evaluator() const override { return "aten"; }
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override;
  const DecoderNetwork* decoder() const override { return &decoder_; }
  bool is_network() const override { return true; }
  /// Of a Bernoulli decoder: its probabilities are the means.
  std::shared_ptr<const LatentModel> with_noise(double sd) const override;

 private:
  std::vector<at::Tensor> call(const std::string& function,
                               std::vector<at::Tensor> inputs) const override;

  Network encoder_;
  DecoderNetwork decoder_, original_;  // on the device, and as it came
};

/// The model that a VAE is, on its device and of its type.
std::shared_ptr<const LatentModel> network_model(const Vae& vae);
/// The same of a file's weights, with what the file says of them.
std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype);

}  // namespace crais
