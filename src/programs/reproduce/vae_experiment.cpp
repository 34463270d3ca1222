#include "programs/reproduce/vae_experiment.h"

#include <algorithm>

#include "bases/base.h"
#include "core/rng.h"
#include "io/json.h"
#include "models/network_model.h"
#include "programs/eval_loglik/settings.h"
#include "targets/decoder_posterior.h"
#include "util/digest.h"

namespace crais {
namespace {

using nlohmann::json;

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.cpu().contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

}  // namespace

VaeExperiment::VaeExperiment(const ExperimentOptions& options, int64_t count) : Subject(options) {
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint);
  ImageSettings settings;
  settings.data_dir = options.data_dir;
  settings.split = "test";
  settings.limit = count;
  std::string notice;
  const EvalModel model = checkpoint_model(checkpoint, options.device, at::kFloat);
  images_ = choose_images(settings, model, notice);
  set_model(checkpoint.vae);
  identity_ = {{"checkpoint", checkpoint.sha256}, {"images", images_.digest}};
}

VaeExperiment::VaeExperiment(const ExperimentOptions& options, const Vae& vae, int64_t count)
    : Subject(options) {
  set_model(vae);
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const Simulated drawn = simulate(vae, count, rng);
  images_.pixels = drawn.images;
  images_.latents = drawn.latents;
  images_.source = "simulated";
  std::string weights;
  for (const auto& [name, tensor] : vae.named_tensors()) weights += bytes_of(tensor);
  identity_ = {{"weights", sha256(weights)}, {"images", sha256(bytes_of(drawn.images))}};
}

void VaeExperiment::set_model(const Vae& vae) {
  vae_ = vae.to(options().device, at::kFloat);
  model_ = network_model(vae_);
  fused_ = fused_decoder_of(*model_);
}

std::string VaeExperiment::described() const {
  return "The first " + std::to_string(images_.size()) + " images of " +
         std::filesystem::path(images_.source).filename().string() + " (" + images_.binarisation +
         "), checkpoint " + options().checkpoint;
}

int64_t VaeExperiment::laplace_cost() const {
  const DecoderPosterior posterior(model_, images_.pixels.slice(0, 0, 1).to(options().device), {},
                                   {}, fused_);
  at::Generator rng = make_generator(0, options().device);
  return BaseRegistry::instance().make("base", "laplace")->build(posterior, rng).cost.densities;
}

Task VaeExperiment::task(const std::string& flags, uint64_t seed, bool for_plans) const {
  const int64_t count =
      for_plans ? std::min(images_.size(), EstimateOptions().pilot_problems) : images_.size();
  // "-" replaces the path of the checkpoint.
  const EvalSettings settings =
      read_settings(CommandLine(eval_loglik_synopsis(), arguments_of("-", flags, seed)));
  const auto part = [this](const at::Tensor& all, int64_t begin, int64_t end) {
    return all.defined() ? all.slice(0, begin, end).to(options().device, at::kFloat) : all;
  };
  ProblemSource problems{count, [this, part](int64_t begin, int64_t end) {
                           return std::make_shared<DecoderPosterior>(
                               model_, part(images_.pixels, begin, end),
                               part(images_.latents, begin, end), at::Tensor(), fused_);
                         }};
  json key = identity_;
  key["settings"] = deciding_settings(settings);
  if (for_plans) key["limit"] = count;
  return {key,
          [options = settings.estimator, problems] { return estimate_cell(options, problems); }};
}

}  // namespace crais
