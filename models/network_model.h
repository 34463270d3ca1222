// A model of weights without code: an MLP decoder under N(0, I), optionally with an encoder.
#pragma once

#include <memory>
#include <string>

#include "models/checkpoint.h"
#include "models/function_model.h"

namespace crais {

/// A model that manual ATen code evaluates, on any device and for any floating type.
class NetworkModel : public FunctionModel {
 public:
  /// The model of a manifest's `vae`.
  NetworkModel(const ModelManifest& manifest, std::string where, at::Device device,
               at::ScalarType dtype);

  const DecoderNetwork* decoder() const override { return &decoder_; }
  bool is_network() const override { return true; }

 private:
  DecoderNetwork decoder_;  // on the model's device
};

/// The model of a VAE, on its device and of its type.
std::shared_ptr<const LatentModel> network_model(const Vae& vae);
/// The model of a checkpoint's weights, with the checkpoint's description.
std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype);

}  // namespace crais
