#include "models/function_model.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/rng.h"
#include "models/decoder_density.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kRowsOfFunctions = 512;  // not measured
constexpr int64_t kRowsOfNetworks = 512;   // few enough to stay in a cache

std::vector<int64_t> with_rows(int64_t rows, const std::vector<int64_t>& shape) {
  std::vector<int64_t> all = {rows};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

ModelManifest manifest_of(const Vae& vae) {
  const VaeArchitecture& architecture = vae.architecture;
  ModelManifest manifest{
      .uniforms = architecture.num_pixels(), .batch = kRowsOfNetworks, .vae = vae};
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

FunctionModel::FunctionModel(ModelManifest manifest, ModelFunctions functions, FunctionPlace place)
    : manifest_(std::move(manifest)), functions_(std::move(functions)), place_(std::move(place)) {}

std::optional<LatentModel::Moments> FunctionModel::prior_moments() const {
  if (!manifest_.model.has("prior")) return {};
  return Moments{manifest_.array("prior.loc"), manifest_.array("prior.scale_tril")};
}

int64_t FunctionModel::num_draws() const {
  if (manifest_.model.has("simulate")) return std::numeric_limits<int64_t>::max();
  const at::Tensor* pairs = manifest_.arrays.find("pairs.z");
  return pairs ? pairs->size(0) : 0;
}

LatentModel::Draws FunctionModel::draw(uint64_t seed, int64_t i) const {
  const auto row_of = [this](const char* name, int64_t row) {
    return manifest_.array(name).slice(0, row, row + 1);
  };
  const bool conditional = manifest_.model.labels.has_value();
  if (!manifest_.model.has("simulate"))
    return {row_of("pairs.x", i), row_of("pairs.z", i),
            conditional ? row_of("pairs.y", i) : at::Tensor()};
  constexpr double kLeast = 1.0 / (1 << 25);  // half a step of float32: uniforms stay above 0
  const int64_t dim = manifest_.model.latent;
  at::Generator rng =
      make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
  const at::Tensor normal = at::empty({1, dim}, at::kFloat).normal_(0, 1, rng);
  const at::Tensor uniform =
      at::empty({1, manifest_.uniforms}, at::kFloat).uniform_(0, 1, rng).clamp_min_(kLeast);
  at::Tensor label;
  if (conditional) {
    const int64_t labels = manifest_.array("labels").size(0);
    label = row_of("labels", at::randint(labels, {1}, rng, at::kLong).item<int64_t>());
  }
  const auto result = results("simulate", {normal, uniform, label},
                              {{1, dim}, with_rows(1, manifest_.model.data_shape)});
  return {result[1], result[0], label};
}

std::vector<at::Tensor> FunctionModel::results(
    const std::string& function, const std::vector<at::Tensor>& inputs,
    const std::vector<std::vector<int64_t>>& shapes) const {
  std::vector<at::Tensor> arguments;
  for (const at::Tensor& input : inputs)
    if (input.defined()) arguments.push_back(input.to(place_.device));
  std::vector<at::Tensor> outputs = functions_(function, arguments);
  bool fits = outputs.size() == shapes.size();
  for (size_t i = 0; fits && i < shapes.size(); ++i)
    fits = at::isFloatingType(outputs[i].scalar_type()) &&
           (shapes[i].empty() || outputs[i].sizes() == at::IntArrayRef(shapes[i]));
  if (!fits)
    throw data_error(place_.where, ": '", function, "' does not return what its description says",
                     kExportAgain);
  return outputs;
}

LatentModel::Density FunctionModel::density(const std::string& function,
                                            const std::vector<at::Tensor>& inputs) const {
  const int64_t rows = inputs[0].size(0);
  const auto outputs = results(function, inputs, {{rows}, {rows, manifest_.model.latent}});
  return {outputs[0], outputs[1]};
}

LatentModel::Density FunctionModel::joint(const at::Tensor& z, const at::Tensor& x,
                                          const at::Tensor& y) const {
  return density("joint", {z, x, y});
}

bool FunctionModel::has_forces(at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && manifest_.model.has(kJointForces);
}

LatentModel::Density FunctionModel::joint_with_forces(const at::Tensor& z, const at::Tensor& x,
                                                      const at::Tensor& y,
                                                      at::ScalarType /*dtype*/) const {
  return density(kJointForces, {z, x, y});
}

std::optional<LatentModel::Density> FunctionModel::prior(const at::Tensor& z) const {
  if (!manifest_.model.has("prior")) return {};
  return density("prior", {z});
}

std::optional<LatentModel::Posterior> FunctionModel::encode(const at::Tensor& x,
                                                            const at::Tensor& y) const {
  if (!manifest_.model.has("encode")) return {};
  const int64_t rows = x.size(0), dim = manifest_.model.latent;
  const auto outputs = results("encode", {x, y}, {{rows, dim}, {}});
  const at::Tensor &loc = outputs[0], &scale = outputs[1];
  if (scale.sizes() == at::IntArrayRef({rows, dim})) return Posterior{loc, (0.5 * scale).exp()};
  if (scale.sizes() != at::IntArrayRef({rows, dim, dim}))
    throw data_error(place_.where, ": its encoder returns neither log_var nor scale_tril");
  return Posterior{loc, scale};
}

std::optional<LatentModel::Output> FunctionModel::output(const at::Tensor& z,
                                                         const at::Tensor& y) const {
  if (!manifest_.model.has("output")) return {};
  const auto outputs = results("output", {z, y}, {{}, {}});
  if (outputs[0].dim() != 2 || outputs[0].size(0) != z.size(0) ||
      outputs[0].sizes() != outputs[1].sizes())
    throw data_error(place_.where, ": its output and Fisher weights are not [rows, M]");
  return Output{outputs[0], outputs[1]};
}

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

std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device, at::ScalarType dtype) {
  constexpr const char* kWhere = "the model in memory";
  manifest.model.kind = "in memory";
  if (manifest.vae) return std::make_shared<NetworkModel>(manifest, kWhere, device, dtype);
  return std::make_shared<FunctionModel>(std::move(manifest), std::move(functions),
                                         FunctionPlace{device, "pytorch", kWhere});
}

std::vector<at::Tensor> with_gradient(
    const at::Tensor& z, const std::function<at::Tensor(const at::Tensor&)>& function) {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true), value = function(leaf);
  return {value.detach(), torch::autograd::grad({value.sum()}, {leaf})[0].to(z.scalar_type())};
}

std::vector<at::Tensor> call_decoder(const DecoderFunctions& functions,
                                     const std::vector<int64_t>& data_shape,
                                     const std::string& name,
                                     const std::vector<at::Tensor>& inputs) {
  if (name == "joint")
    return with_gradient(inputs[0], [&](const at::Tensor& z) {
      return functions.likelihood.log_prob(inputs[1].flatten(1), functions.decode(z).flatten(1)) +
             log_standard_normal(z);
    });
  if (name == "encode") {
    const Vae::Posterior q = functions.encode(inputs[0]);
    return {q.mean, q.log_var};
  }
  const at::Tensor output = functions.decode(inputs[0]).flatten(1);
  if (name == "output") return {output, functions.likelihood.fisher(output)};
  if (name != "simulate") throw internal_error("a decoder has no '", name, "'");
  const at::Tensor drawn = functions.likelihood.draw(output, inputs[1].to(output.device()));
  return {inputs[0], drawn.view(with_rows(output.size(0), data_shape))};
}

std::shared_ptr<const LatentModel> decoder_model(ModelDescription described,
                                                 DecoderFunctions functions, FunctionPlace place) {
  ModelManifest manifest{.model = std::move(described)};
  manifest.uniforms = manifest.model.num_values();
  manifest.batch = kRowsOfFunctions;
  manifest.model.functions = {"joint", "output", "simulate"};
  if (functions.encode) manifest.model.functions.emplace_back("encode");
  const auto call = [functions = std::move(functions), shape = manifest.model.data_shape](
                        const std::string& name, const std::vector<at::Tensor>& inputs) {
    return call_decoder(functions, shape, name, inputs);
  };
  return std::make_shared<FunctionModel>(std::move(manifest), call, std::move(place));
}

}  // namespace crais
