#include "models/network_model.h"

#include <utility>

#include "models/decoder_density.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kRowsAtOnce = 512;  // stays in a cache

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

}  // namespace

NetworkModel::NetworkModel(ModelManifest manifest_with_vae, std::string where, at::Device device,
                           at::ScalarType dtype)
    : ManifestModel(std::move(manifest_with_vae), std::move(where)) {
  const Vae& vae = *manifest().vae;
  const Vae moved = vae.to(device, dtype);
  encoder_ = moved.encoder;
  decoder_ = decoder_network(moved);
  original_ = decoder_network(vae);
}

std::shared_ptr<const LatentModel> NetworkModel::with_noise(double sd) const {
  const Likelihood& own = decoder_.likelihood;
  if (own.is_of_logits() && !own.is_bernoulli()) return nullptr;  // no layer has such means
  auto noisy = std::make_shared<NetworkModel>(*this);
  for (DecoderNetwork* decoder : {&noisy->decoder_, &noisy->original_}) {
    if (decoder->likelihood.is_bernoulli())
      decoder->layers.back().activation = Activation::kSigmoid;
    decoder->likelihood = {Likelihood::Family::kGaussian, sd};
  }
  noisy->set_likelihood(noisy->decoder_.likelihood);
  return noisy;
}

LatentModel::Density NetworkModel::joint(const at::Tensor& z, const at::Tensor& x,
                                         const at::Tensor& /*y*/) const {
  const at::TensorOptions options = decoder_.layers.front().weight.options();
  const auto [value, grad] = log_joint_with_grad(decoder_, z.to(options), x.flatten(1).to(options));
  return {value, grad};
}

std::vector<at::Tensor> NetworkModel::call(const std::string& function,
                                           std::vector<at::Tensor> inputs) const {
  if (function == "encode") return encoder_.forward(inputs[0].flatten(1)).chunk(2, -1);
  if (function == "output") {
    const at::Tensor output = decoder_.forward(inputs[0]);
    return {output, decoder_.likelihood.fisher(output)};
  }
  if (function != "simulate") throw internal_error("a decoder has no '" + function + "'");
  // By the weights as they came: draws are the same on every device.
  const at::Tensor z = inputs[0].to(original_.layers.front().weight.options());
  const at::Tensor x = original_.likelihood.draw(original_.forward(z), inputs[1]);
  std::vector<int64_t> shape = description().data_shape;
  shape.insert(shape.begin(), x.size(0));
  return {inputs[0], x.view(shape)};
}

std::shared_ptr<const LatentModel> network_model(const Vae& vae) {
  const at::Tensor& weight = vae.decoder.layers.front().weight;
  return std::make_shared<NetworkModel>(manifest_of(vae), "the VAE", weight.device(),
                                        weight.scalar_type());
}

std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype) {
  ModelManifest manifest = manifest_of(checkpoint.vae);
  manifest.model.binarisation = checkpoint.info.binarisation;
  return std::make_shared<NetworkModel>(std::move(manifest), "the checkpoint", device, dtype);
}

}  // namespace crais
