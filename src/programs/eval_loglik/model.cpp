#include "programs/eval_loglik/model.h"

#include <set>
#include <sstream>
#include <utility>

#include "models/network_model.h"
#include "models/package_model.h"
#include "models/script_model.h"
#include "programs/eval_loglik/flag_table.h"
#include "targets/model_prior.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

/// A description of a TorchScript decoder, in the form of RecognisedVae::describe.
std::string describe_decoder(const ModelDescription& model) {
  std::ostringstream text;
  text << "decoder     " << model.latent << " latents to " << at::IntArrayRef(model.data_shape)
       << "\nencoder     " << (model.has("encode") ? "its method 'encode'" : "it has none")
       << "\nlikelihood  " << model.likelihood
       << (model.likelihood.rfind("gaussian", 0) == 0 ? ": the outputs are means\n"
                                                      : ": the outputs are logits\n");
  return text.str();
}

/// True for a checkpoint of crais, which has "crais" in its metadata.
bool is_checkpoint(const StateDict& state) { return state.metadata.count("crais") > 0; }

EvalModel weights_model(const ModelFile& file, const ForeignOptions& options, at::Device device,
                        at::ScalarType dtype, std::string& notice) {
  const std::string path = file.where();
  const StateDict state = read_state_dict(file);
  if (is_checkpoint(state)) {
    refuse_idle_flags(options.given, FlagsOf::kCheckpoint, path);
    return checkpoint_model(checkpoint_of(state), device, dtype);
  }
  refuse_idle_flags(options.given, FlagsOf::kStateDict, path);
  const RecognisedVae recognised = vae_from_state_dict(state, options.state_dict);
  notice = path + ", as it was understood:\n" + recognised.describe();
  Checkpoint checkpoint{recognised.vae, {}, state.sha256};
  const bool is_bernoulli = recognised.vae.architecture.likelihood.is_bernoulli();
  checkpoint.info.binarisation = is_bernoulli ? "" : "none";  // the file does not say
  return checkpoint_model(checkpoint, device, dtype);
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

EvalModel open_model(const std::string& path, const ForeignOptions& options, at::Device device,
                     at::ScalarType dtype, std::string& notice) {
  const ModelFile file(path);
  if (file.kind == ModelFile::Kind::kWeights)
    return weights_model(file, options, device, dtype, notice);
  std::shared_ptr<const LatentModel> model;
  if (file.kind == ModelFile::Kind::kScript) {
    model = read_script_model(file, device, dtype, options.script());
    const bool is_plain = model->description().kind == kPlainScript;
    refuse_idle_flags(options.given, is_plain ? FlagsOf::kTorchScript : FlagsOf::kExported, path);
    if (is_plain)
      notice = path + ", as it was understood:\n" + describe_decoder(model->description());
  } else {
    refuse_idle_flags(options.given, FlagsOf::kExported, path);
    model = read_package_model(file, device, dtype);
    if (!model->is_network() && dtype != at::kFloat)
      throw argument_error("`dtype`: " + path + " was exported in float32");
  }
  return latent_eval_model(model, file.sha256(), at::device(device).dtype(dtype));
}

}  // namespace crais
