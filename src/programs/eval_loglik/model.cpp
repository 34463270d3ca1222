#include "programs/eval_loglik/model.h"

#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "core/rng.h"
#include "models/network_model.h"
#include "models/package_model.h"
#include "models/script_model.h"
#include "programs/eval_loglik/flag_table.h"
#include "targets/model_prior.h"
#include "targets/tempered.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

/// x = mean + noise, with the noise from its own stream.
at::Tensor with_normal_noise(const at::Tensor& mean, double sd, uint64_t seed, int64_t i) {
  at::Generator rng =
      make_generator(mix64(derive_seed(seed, Purpose::kSimulate, static_cast<uint64_t>(i))));
  return mean + sd * at::empty_like(mean).normal_(0, 1, rng);
}

/// A description of a TorchScript decoder, in the form of RecognisedVae::describe.
std::string describe_decoder(const ModelDescription& model) {
  std::ostringstream text;
  text << "decoder     " << model.latent << " latents to " << at::IntArrayRef(model.data_shape)
       << "\nencoder     " << (model.has("encode") ? "its method 'encode'" : "it has none")
       << "\nlikelihood  " << model.likelihood
       << (model.noise_sd ? ": the outputs are means\n" : ": the outputs are logits\n");
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
                                                                        : nullptr),
      description_(model_->description()) {}

std::shared_ptr<const Target> EvalModel::posterior(const at::Tensor& data,
                                                   const at::Tensor& latents,
                                                   const at::Tensor& labels) const {
  auto target = std::make_shared<DecoderPosterior>(
      model_, data.to(options_), latents.defined() ? latents.to(options_) : latents,
      labels.defined() ? labels.to(options_.device()) : labels, fused_);
  if (!own_noise_) return target;
  const double sd = *description_.noise_sd, power = std::pow(*own_noise_ / sd, 2);
  const auto constant = [&](double of) {
    return 0.5 * static_cast<double>(description_.num_values()) * std::log(2 * M_PI * of * of);
  };
  return std::make_shared<Tempered>(
      target, Tempered::Options{power, power * constant(*own_noise_) - constant(sd),
                                /*keeps_draws=*/true});
}

LatentModel::Draws EvalModel::draw(uint64_t seed, int64_t i) const {
  LatentModel::Draws drawn = model_->draw(seed, i);
  if (own_noise_) {
    const at::Tensor mean = model_->output(drawn.latents, drawn.labels)->value;
    drawn.data = with_normal_noise(mean.to(at::kCPU, at::kFloat), *description_.noise_sd, seed, i);
  }
  drawn.data = drawn.data.flatten(1).to(at::kCPU, at::kFloat);
  return drawn;
}

EvalModel EvalModel::with_noise(double sd) const {
  if (const auto noisy = model_->with_noise(sd)) return {noisy, options_, record_};
  const std::optional<double> own = model_->description().noise_sd;
  if (!own)
    throw argument_error(
        description_.name + " has the likelihood " + description_.likelihood +
        ", which does not state the mean of x; the squared error needs a decoder of means, "
        "exported without a likelihood or with crais.Gaussian(sd) with one sd");
  EvalModel noisy = *this;
  noisy.own_noise_ = own;
  noisy.description_.set_likelihood({Likelihood::Family::kGaussian, sd});
  noisy.description_.is_mass = false;
  return noisy;
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
