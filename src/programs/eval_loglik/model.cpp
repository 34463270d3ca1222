#include "programs/eval_loglik/model.h"

#include <set>
#include <utility>

#include "models/function_model.h"
#include "models/model_file.h"
#include "models/package_model.h"
#include "targets/model_prior.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

/// Throws Error kArgument for an option of a model that describes itself.
void refuse_idle(const ScriptOptions& options, const std::string& path) {
  if (options.likelihood.empty() && options.latent == 0) return;
  throw argument_error(path, (options.likelihood.empty() ? ": `latent`" : ": `likelihood`"),
                       " does nothing for a model that describes itself; leave it out");
}

}  // namespace

EvalModel::EvalModel(std::shared_ptr<const LatentModel> model, const at::TensorOptions& options,
                     Record record)
    : model_(std::move(model)),
      options_(options),
      record_(std::move(record)),
      fused_(options.device().is_cpu() && options.dtype() == at::kFloat ? fused_decoder_of(*model_)
                                                                        : nullptr) {}

std::shared_ptr<const Target> EvalModel::posterior(const at::Tensor& data,
                                                   const at::Tensor& latents,
                                                   const at::Tensor& labels) const {
  return std::make_shared<DecoderPosterior>(
      model_, data.to(options_), latents.defined() ? latents.to(options_) : latents,
      labels.defined() ? labels.to(options_.device()) : labels, fused_);
}

LatentModel::Draws EvalModel::draw(uint64_t seed, int64_t i) const {
  LatentModel::Draws drawn = model_->draw(seed, i);
  drawn.data = drawn.data.flatten(1).to(at::kCPU, at::kFloat);
  return drawn;
}

std::shared_ptr<const Target> EvalModel::prior() const {
  constexpr int64_t kReplicates = 16;
  static const std::set<std::string> kFormulas = {"standard-normal", "gaussian", "mixture", "vamp"};
  const ModelDescription& d = model_->description();
  if (!d.has("prior") || kFormulas.count(d.prior) > 0) return nullptr;
  return std::make_shared<ModelPrior>(model_, options_, kReplicates);
}

EvalModel checkpoint_model(const Checkpoint& checkpoint, at::Device device, at::ScalarType dtype) {
  const VaeArchitecture& architecture = checkpoint.vae.architecture;
  return {network_model(checkpoint, device, dtype),
          at::device(device).dtype(dtype),
          {"checkpoint",
           {{"sha256", checkpoint.sha256},
            {"pixels", architecture.num_pixels()},
            {"latent", architecture.latent},
            {"binarisation", checkpoint.info.binarisation},
            {"epochs", checkpoint.info.epochs}}}};
}

EvalModel latent_eval_model(std::shared_ptr<const LatentModel> model, const std::string& digest,
                            const at::TensorOptions& options) {
  const ModelDescription d = model->description();
  return {std::move(model),
          options,
          {"model",
           {{"sha256", digest},
            {"kind", d.kind},
            {"name", d.name},
            {"pixels", d.num_values()},
            {"shape", d.data_shape},
            {"latent", d.latent},
            {"likelihood", d.likelihood},
            {"prior", d.prior}}}};
}

EvalModel open_model(const std::string& path, const ScriptOptions& options, at::Device device,
                     at::ScalarType dtype) {
  using FileKind = ModelFile::Kind;
  const ModelFile file(path);
  std::shared_ptr<const LatentModel> model;
  if (file.kind == FileKind::kScript) model = read_script_model(file, device, dtype, options);
  if (!model || model->description().kind != kPlainScript) refuse_idle(options, path);
  if (file.kind == FileKind::kCheckpoint)
    return checkpoint_model(parse_checkpoint(file.bytes, path), device, dtype);
  if (!model) model = read_package_model(file, device, dtype);
  if (file.kind == FileKind::kPackage && dtype != at::kFloat)
    throw argument_error("`dtype`: ", path, " was exported in float32");
  return latent_eval_model(model, file.sha256(), at::device(device).dtype(dtype));
}

}  // namespace crais
