#include "programs/eval_loglik/model.h"

#include <limits>
#include <utility>

#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "models/model_package.h"
#include "models/script_model.h"
#include "targets/model_posterior.h"
#include "targets/vae_posterior.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

class CheckpointModel : public EvalModel {
 public:
  CheckpointModel(const Checkpoint& checkpoint, at::Device device, at::ScalarType dtype)
      : original_(checkpoint.vae),
        vae_(checkpoint.vae.to(device, dtype)),
        fused_(make_fused_decoder(vae_)),
        options_(at::device(device).dtype(dtype)) {
    const VaeArchitecture& architecture = vae_.architecture;
    description_.name = "VAE";
    description_.kind = "checkpoint";
    description_.latent = architecture.latent;
    description_.data_shape = {architecture.image_rows, architecture.image_cols};
    description_.likelihood = to_string(architecture.likelihood);
    description_.binarisation = checkpoint.info.binarisation;
    if (architecture.likelihood.family == Likelihood::Family::kBernoulli) {
      description_.low = 0.0;
      description_.high = 1.0;
    }
    record_ = {{"sha256", checkpoint.sha256},
               {"pixels", architecture.num_pixels()},
               {"latent", architecture.latent},
               {"binarisation", checkpoint.info.binarisation},
               {"epochs", checkpoint.info.epochs}};
  }

  const ModelDescription& description() const override { return description_; }
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& /*labels*/) const override {
    return std::make_shared<VaePosterior>(
        vae_, data.to(options_), latents.defined() ? latents.to(options_) : latents, fused_);
  }
  int64_t num_draws() const override { return std::numeric_limits<int64_t>::max(); }
  LatentModel::Draws draw(uint64_t seed, int64_t i) const override {
    at::Generator rng =
        make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
    const Simulated one = simulate(original_, 1, rng);
    return {one.images, one.latents, {}};
  }
  std::string evaluator() const override { return fused_ ? fused_->name() : "aten"; }
  bool needs_blas() const override { return !fused_; }
  std::pair<std::string, json> record() const override { return {"checkpoint", record_}; }

 private:
  Vae original_, vae_;                         // as the file has it, and on the device
  std::shared_ptr<const FusedDecoder> fused_;  // of vae_; null: ATen
  at::TensorOptions options_;
  ModelDescription description_;
  json record_;
};

class ExportedModel : public EvalModel {
 public:
  ExportedModel(std::shared_ptr<const LatentModel> model, const std::string& digest,
                const at::TensorOptions& options)
      : model_(std::move(model)), options_(options) {
    if (model_->vae()) {
      vae_ = model_->vae()->to(options.device(), c10::typeMetaToScalarType(options.dtype()));
      fused_ = make_fused_decoder(*vae_);
    }
    const ModelDescription& d = model_->description();
    record_ = {{"sha256", digest},           {"kind", d.kind},        {"name", d.name},
               {"pixels", d.num_values()},   {"shape", d.data_shape}, {"latent", d.latent},
               {"likelihood", d.likelihood}, {"prior", d.prior}};
  }

  const ModelDescription& description() const override { return model_->description(); }
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& labels) const override {
    const at::Tensor z = latents.defined() ? latents.to(options_) : latents;
    if (vae_) return std::make_shared<VaePosterior>(*vae_, data.to(options_), z, fused_);
    std::vector<int64_t> shape = description().data_shape;
    shape.insert(shape.begin(), data.size(0));
    return std::make_shared<ModelPosterior>(
        model_, data.reshape(shape).to(options_), z,
        labels.defined() ? labels.to(options_.device()) : labels);
  }
  int64_t num_draws() const override { return model_->num_draws(); }
  LatentModel::Draws draw(uint64_t seed, int64_t i) const override {
    const LatentModel::Draws drawn = model_->draw(seed, i);
    return {drawn.data.flatten(1).to(at::kCPU, at::kFloat), drawn.latents, drawn.labels};
  }
  std::string evaluator() const override { return fused_ ? fused_->name() : model_->evaluator(); }
  bool needs_blas() const override { return vae_ && !fused_; }
  std::pair<std::string, json> record() const override { return {"model", record_}; }

 private:
  std::shared_ptr<const LatentModel> model_;
  std::optional<Vae> vae_;  // of MLPs, on the device
  std::shared_ptr<const FusedDecoder> fused_;
  at::TensorOptions options_;
  json record_;
};

/// A checkpoint of ours says so in its metadata.
bool is_checkpoint(const StateDict& state) { return state.metadata.count("crais") > 0; }

std::unique_ptr<EvalModel> vae_model(const std::string& path, const StateDictOptions& options,
                                     at::Device device, at::ScalarType dtype, std::string& notice) {
  const StateDict state = read_state_dict(path);
  if (is_checkpoint(state)) return checkpoint_model(read_checkpoint(path), device, dtype);
  const RecognisedVae found = vae_from_state_dict(state, options);
  notice = path + ", as it was understood:\n" + found.describe();
  Checkpoint checkpoint{found.vae, {}, state.sha256};
  if (found.vae.architecture.likelihood.family == Likelihood::Family::kGaussian)
    checkpoint.info.binarisation = "none";
  return checkpoint_model(checkpoint, device, dtype);
}

}  // namespace

std::unique_ptr<EvalModel> checkpoint_model(const Checkpoint& checkpoint, at::Device device,
                                            at::ScalarType dtype) {
  return std::make_unique<CheckpointModel>(checkpoint, device, dtype);
}

std::unique_ptr<EvalModel> latent_eval_model(std::shared_ptr<const LatentModel> model,
                                             const std::string& digest,
                                             const at::TensorOptions& options) {
  return std::make_unique<ExportedModel>(std::move(model), digest, options);
}

std::unique_ptr<EvalModel> open_model(const std::string& path, const StateDictOptions& options,
                                      at::Device device, at::ScalarType dtype,
                                      std::string& notice) {
  const auto exported = [&](std::shared_ptr<const LatentModel> model) {
    return std::make_unique<ExportedModel>(std::move(model), sha256(read_file(path)),
                                           at::device(device).dtype(dtype));
  };
  if (is_script_model(path)) return exported(read_script_model(path, device, dtype));
  if (!is_model_package(path)) return vae_model(path, options, device, dtype, notice);
  auto model = read_model_package(path, device);
  if (!model->vae() && dtype != at::kFloat)
    throw argument_error("`dtype`: " + path + " was exported in float32");
  return exported(std::move(model));
}

}  // namespace crais
