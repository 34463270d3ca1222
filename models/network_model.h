// A model that is weights and no code: an MLP decoder under N(0, I), perhaps with an encoder.
#pragma once

#include <memory>
#include <string>

#include "models/checkpoint.h"
#include "models/function_model.h"

namespace crais {

/// By hand in ATen, on any device and of any floating type.
class NetworkModel : public FunctionModel {
 public:
  /// Of a manifest's `vae`.
  NetworkModel(const ModelManifest& manifest, std::string where, at::Device device,
               at::ScalarType dtype);

  const DecoderNetwork* decoder() const override { return &decoder_; }
  bool is_network() const override { return true; }
  /// Of a Bernoulli decoder: its probabilities are the means.
  std::shared_ptr<const LatentModel> with_noise(double sd) const override;

 private:
  DecoderNetwork decoder_;  // on the device
};

/// The model that a VAE is, on its device and of its type.
std::shared_ptr<const LatentModel> network_model(const Vae& vae);
/// The same of a file's weights, with what the file says of them.
std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype);

}  // namespace crais
