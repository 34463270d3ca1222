#include "programs/eval_loglik/model.h"

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "core/rng.h"
#include "kernels/fused_decoder.h"
#include "models/model_package.h"
#include "models/script_model.h"
#include "programs/eval_loglik/flag_table.h"
#include "targets/decoder_target.h"
#include "targets/model_posterior.h"
#include "targets/model_prior.h"
#include "targets/tempered.h"
#include "targets/vae_posterior.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

/// Of the kernel that computes an anneal.
std::string name_of(const FusedDecoder& fused, std::optional<at::ScalarType> forces) {
  if (!forces) return fused.name();
  return fused.cheap() ? fused.cheap()->name() : "aten";
}

/// What is known of a model once its likelihood is normal noise: x may be any number.
void make_normal(ModelDescription& description, double sd) {
  description.likelihood = "gaussian:" + shortest(sd);
  description.low = description.high = description.step = {};
  description.is_mass = false;
}

/// x = mean + noise, from a stream of its own.
at::Tensor with_normal_noise(const at::Tensor& mean, double sd, uint64_t seed, int64_t i) {
  at::Generator rng =
      make_generator(mix64(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i))));
  return mean + sd * at::empty_like(mean).normal_(0, 1, rng);
}

/// Means of binary pixels with normal noise: an MLP, then a sigmoid.
class SigmoidModel : public EvalModel {
 public:
  SigmoidModel(ModelDescription description, Vae original, const Vae& vae, double sd,
               std::pair<std::string, json> record)
      : description_(std::move(description)),
        original_(std::move(original)),
        vae_(vae),
        sd_(sd),
        record_(std::move(record)) {
    likelihood_.family = Likelihood::Family::kGaussian;
    likelihood_.noise_sd = sd;
    make_normal(description_, sd);
  }

  const ModelDescription& description() const override { return description_; }
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& /*labels*/) const override {
    const at::TensorOptions options = vae_.decoder.layers.front().weight.options();
    DecoderTarget::Options target;
    target.decode = [decoder = vae_.decoder](const at::Tensor& z) {
      return at::sigmoid(decoder.forward(z));
    };
    target.latent_dim = vae_.architecture.latent;
    target.likelihood = likelihood_;
    target.latents = latents.defined() ? latents.to(options) : latents;
    return std::make_shared<DecoderTarget>(target, data.to(options));
  }
  int64_t num_draws() const override { return std::numeric_limits<int64_t>::max(); }
  LatentModel::Draws draw(uint64_t seed, int64_t i) const override {
    at::Generator rng =
        make_generator(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i)));
    const at::Tensor z = simulate(original_, 1, rng).latents;
    return {with_normal_noise(at::sigmoid(original_.decoder.forward(z)), sd_, seed, i), z, {}};
  }
  std::shared_ptr<const EvalModel> with_noise(double sd) const override {
    return std::make_shared<SigmoidModel>(description_, original_, vae_, sd, record_);
  }
  std::string evaluator(std::optional<at::ScalarType> /*forces*/) const override { return "aten"; }
  std::pair<std::string, json> record() const override { return record_; }

 private:
  ModelDescription description_;
  Vae original_, vae_;  // as the file has it, and on the device
  double sd_;
  Likelihood likelihood_;
  std::pair<std::string, json> record_;
};

class CheckpointModel : public EvalModel {
 public:
  CheckpointModel(const Checkpoint& checkpoint, at::Device device, at::ScalarType dtype)
      : checkpoint_(checkpoint),
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
      description_.step = 1.0;
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
    const Simulated one = simulate(checkpoint_.vae, 1, rng);
    return {one.images, one.latents, {}};
  }
  std::shared_ptr<const EvalModel> with_noise(double sd) const override {
    if (vae_.architecture.likelihood.family == Likelihood::Family::kBernoulli)
      return std::make_shared<SigmoidModel>(description_, checkpoint_.vae, vae_, sd, record());
    Checkpoint other = checkpoint_;
    other.vae.architecture.likelihood.noise_sd = sd;
    return std::make_shared<CheckpointModel>(other, options_.device(),
                                             c10::typeMetaToScalarType(options_.dtype()));
  }
  std::string evaluator(std::optional<at::ScalarType> forces) const override {
    return fused_ ? name_of(*fused_, forces) : "aten";
  }
  std::pair<std::string, json> record() const override { return {"checkpoint", record_}; }

 private:
  Checkpoint checkpoint_;
  Vae vae_;                                    // on the device
  std::shared_ptr<const FusedDecoder> fused_;  // of vae_; null: ATen
  at::TensorOptions options_;
  ModelDescription description_;
  json record_;
};

class ExportedModel : public EvalModel {
 public:
  /// `noise_sd` stands in place of the model's own, where it is above 0.
  ExportedModel(std::shared_ptr<const LatentModel> model, std::string digest,
                const at::TensorOptions& options, double noise_sd = 0)
      : model_(std::move(model)),
        digest_(std::move(digest)),
        options_(options),
        noise_sd_(noise_sd),
        description_(model_->description()) {
    if (noise_sd_ > 0) make_normal(description_, noise_sd_);
    if (model_->vae()) {
      vae_ = model_->vae()->to(options.device(), c10::typeMetaToScalarType(options.dtype()));
      if (noise_sd_ > 0) vae_->architecture.likelihood.noise_sd = noise_sd_;
      fused_ = make_fused_decoder(*vae_);
    } else if (options.device().is_cpu() && options.dtype() == at::kFloat) {
      fused_ = fused_decoder_of(*model_);
    }
    const ModelDescription& d = model_->description();
    record_ = {{"sha256", digest_},          {"kind", d.kind},        {"name", d.name},
               {"pixels", d.num_values()},   {"shape", d.data_shape}, {"latent", d.latent},
               {"likelihood", d.likelihood}, {"prior", d.prior}};
  }

  const ModelDescription& description() const override { return description_; }
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& labels) const override {
    const at::Tensor z = latents.defined() ? latents.to(options_) : latents;
    if (vae_) return std::make_shared<VaePosterior>(*vae_, data.to(options_), z, fused_);
    std::vector<int64_t> shape = description().data_shape;
    shape.insert(shape.begin(), data.size(0));
    auto target = std::make_shared<ModelPosterior>(
        model_, data.reshape(shape).to(options_), z,
        labels.defined() ? labels.to(options_.device()) : labels, fused_);
    if (noise_sd_ == 0) return target;
    const double power = std::pow(*description_.noise_sd / noise_sd_, 2);
    const auto constant = [&](double sd) {
      return 0.5 * static_cast<double>(description_.num_values()) * std::log(2 * M_PI * sd * sd);
    };
    return std::make_shared<Tempered>(
        target,
        Tempered::Options{power, power * constant(*description_.noise_sd) - constant(noise_sd_),
                          /*keeps_draws=*/true});
  }
  int64_t num_draws() const override { return model_->num_draws(); }
  LatentModel::Draws draw(uint64_t seed, int64_t i) const override {
    const LatentModel::Draws drawn = model_->draw(seed, i);
    if (noise_sd_ == 0)
      return {drawn.data.flatten(1).to(at::kCPU, at::kFloat), drawn.latents, drawn.labels};
    const at::Tensor mean = vae_ ? model_->vae()->decoder.forward(drawn.latents)
                                 : model_->output(drawn.latents, drawn.labels)->value;
    return {with_normal_noise(mean.to(at::kCPU, at::kFloat), noise_sd_, seed, i), drawn.latents,
            drawn.labels};
  }
  std::shared_ptr<const EvalModel> with_noise(double sd) const override {
    if (vae_ && vae_->architecture.likelihood.family == Likelihood::Family::kBernoulli)
      return std::make_shared<SigmoidModel>(description_, *model_->vae(), *vae_, sd, record());
    if (!vae_ && !description_.noise_sd)
      throw argument_error(description_.name + " has the likelihood " + description_.likelihood +
                           ", which does not say what the mean of x is: the squared error takes a "
                           "decoder of means, exported without a likelihood or with "
                           "crais.Gaussian(sd) of one sd");
    return std::make_shared<ExportedModel>(model_, digest_, options_, sd);
  }
  std::shared_ptr<const Target> prior() const override {
    constexpr int64_t kReplicates = 16;
    static const std::set<std::string> formulas = {"standard-normal", "gaussian", "mixture",
                                                   "vamp"};
    const ModelDescription& d = model_->description();
    if (!d.has("prior") || formulas.count(d.prior) > 0) return nullptr;
    return std::make_shared<ModelPrior>(model_, options_, kReplicates);
  }
  std::string evaluator(std::optional<at::ScalarType> forces) const override {
    if (!fused_ || (!vae_ && forces && !fused_->cheap())) return model_->evaluator();
    return name_of(*fused_, forces);
  }
  std::pair<std::string, json> record() const override { return {"model", record_}; }

 private:
  std::shared_ptr<const LatentModel> model_;
  std::string digest_;
  std::optional<Vae> vae_;  // of MLPs, on the device
  std::shared_ptr<const FusedDecoder> fused_;
  at::TensorOptions options_;
  double noise_sd_;
  ModelDescription description_;
  json record_;
};

/// What was found out about a decoder in TorchScript, as RecognisedVae::describe says it.
std::string describe_decoder(const ModelDescription& model) {
  std::ostringstream text;
  text << "decoder     " << model.latent << " latents to " << at::IntArrayRef(model.data_shape)
       << "\nencoder     " << (model.has("encode") ? "its method 'encode'" : "it has none")
       << "\nlikelihood  " << model.likelihood
       << (model.noise_sd ? ": the outputs are means\n" : ": the outputs are logits\n");
  return text.str();
}

/// A checkpoint of ours says so in its metadata.
bool is_checkpoint(const StateDict& state) { return state.metadata.count("crais") > 0; }

std::unique_ptr<EvalModel> vae_model(const std::string& path, const ForeignOptions& options,
                                     at::Device device, at::ScalarType dtype, std::string& notice) {
  const StateDict state = read_state_dict(path);
  if (is_checkpoint(state)) {
    refuse_idle_flags(options.given, FlagsOf::kCheckpoint, path);
    return checkpoint_model(read_checkpoint(path), device, dtype);
  }
  refuse_idle_flags(options.given, FlagsOf::kStateDict, path);
  const RecognisedVae found = vae_from_state_dict(state, options.state_dict);
  notice = path + ", as it was understood:\n" + found.describe();
  Checkpoint checkpoint{found.vae, {}, state.sha256};
  const bool is_gaussian =
      found.vae.architecture.likelihood.family == Likelihood::Family::kGaussian;
  checkpoint.info.binarisation = is_gaussian ? "none" : "";  // weights do not say
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

std::unique_ptr<EvalModel> open_model(const std::string& path, const ForeignOptions& options,
                                      at::Device device, at::ScalarType dtype,
                                      std::string& notice) {
  const auto exported = [&](std::shared_ptr<const LatentModel> model) {
    return std::make_unique<ExportedModel>(std::move(model), sha256(read_file(path)),
                                           at::device(device).dtype(dtype));
  };
  if (is_script_model(path)) {
    auto model = read_script_model(path, device, dtype, options.script());
    const bool is_plain = model->description().kind == kPlainScript;
    refuse_idle_flags(options.given, is_plain ? FlagsOf::kTorchScript : FlagsOf::kExported, path);
    if (is_plain)
      notice = path + ", as it was understood:\n" + describe_decoder(model->description());
    return exported(std::move(model));
  }
  if (!is_model_package(path)) return vae_model(path, options, device, dtype, notice);
  refuse_idle_flags(options.given, FlagsOf::kExported, path);
  auto model = read_model_package(path, device);
  if (!model->vae() && dtype != at::kFloat)
    throw argument_error("`dtype`: " + path + " was exported in float32");
  return exported(std::move(model));
}

}  // namespace crais
