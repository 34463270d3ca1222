#include "models/network_model.h"

#include <utility>

#include "models/decoder_density.h"

namespace crais {
namespace {

constexpr int64_t kRowsAtOnce = 512;  // few enough to stay in a cache

ModelManifest manifest_of(const Vae& vae) {
  const VaeArchitecture& architecture = vae.architecture;
  ModelManifest manifest;
  manifest.vae = vae;
  manifest.uniforms = architecture.num_pixels();
  manifest.batch = kRowsAtOnce;
  ModelDescription& d = manifest.model;
  d.name = "VAE";
  d.kind = "checkpoint";
  d.latent = architecture.latent;
  d.data_shape = {architecture.image_rows, architecture.image_cols};
  d.set_likelihood(architecture.likelihood);
  d.functions = {"joint", "output", "simulate"};
  if (!vae.encoder.empty()) d.functions.emplace_back("encode");
  return manifest;
}

/// The functions of a VAE on the device, and of its original weights.
ModelFunctions functions_of(const Vae& moved, const Vae& original,
                            const std::vector<int64_t>& data_shape) {
  return [=](const std::string& name,
             const std::vector<at::Tensor>& inputs) -> std::vector<at::Tensor> {
    // From the original weights: draws are then equal on every device.
    const Vae& vae = name == "simulate" ? original : moved;
    const at::TensorOptions options = vae.decoder.layers.front().weight.options();
    if (name == "joint") {
      const auto [value, grad] = log_joint_with_grad(decoder_network(vae), inputs[0].to(options),
                                                     inputs[1].flatten(1).to(options));
      return {value, grad};
    }
    const DecoderFunctions functions{
        [&](const at::Tensor& z) { return vae.decoder.forward(z.to(options)); },
        [&](const at::Tensor& x) { return vae.encode(x.flatten(1)); }, vae.architecture.likelihood};
    return call_decoder(functions, data_shape, name, inputs);
  };
}

}  // namespace

NetworkModel::NetworkModel(const ModelManifest& manifest_with_vae, std::string where,
                           at::Device device, at::ScalarType dtype)
    : FunctionModel(manifest_with_vae,
                    functions_of(manifest_with_vae.vae->to(device, dtype), *manifest_with_vae.vae,
                                 manifest_with_vae.model.data_shape),
                    {device, "aten", std::move(where)}),
      decoder_(decoder_network(manifest_with_vae.vae->to(device, dtype))) {}

std::shared_ptr<const LatentModel> network_model(const Vae& vae) {
  const at::Tensor& weight = vae.decoder.layers.front().weight;
  return std::make_shared<NetworkModel>(manifest_of(vae), "the VAE", weight.device(),
                                        weight.scalar_type());
}

std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype) {
  ModelManifest manifest = manifest_of(checkpoint.vae);
  manifest.model.binarisation = checkpoint.info.binarisation;
  return std::make_shared<NetworkModel>(manifest, "the checkpoint", device, dtype);
}

}  // namespace crais
