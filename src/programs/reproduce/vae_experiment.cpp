#include "programs/reproduce/vae_experiment.h"

#include <algorithm>
#include <utility>

#include "bases/base.h"
#include "core/rng.h"
#include "io/json.h"
#include "models/network_model.h"
#include "programs/eval_loglik/settings.h"
#include "targets/decoder_posterior.h"
#include "util/files.h"

namespace crais {
namespace {

using nlohmann::json;

EvalSettings settings_of(const std::string& flags, uint64_t seed) {
  // A dash stands in the checkpoint's place.
  return read_settings(CommandLine(eval_loglik_synopsis(), arguments_of("-", flags, seed)));
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.cpu().contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

}  // namespace

VaeExperiment::VaeExperiment(const ExperimentOptions& options, int64_t count, bool simulated)
    : options_(options) {
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint);
  ImageSettings settings;
  settings.data_dir = options.data_dir;
  settings.split = "test";
  (simulated ? settings.simulate : settings.limit) = count;
  std::string notice;
  const EvalModel model = checkpoint_model(checkpoint, options.device, at::kFloat);
  images_ = choose_images(settings, model, notice);
  vae_ = checkpoint.vae.to(options.device, at::kFloat);
  model_ = network_model(vae_);
  fused_ = fused_decoder_of(*model_);
  identity_ = {{"checkpoint", checkpoint.sha256}, {"images", images_.digest}};
}

VaeExperiment::VaeExperiment(const ExperimentOptions& options, const Vae& vae, int64_t count)
    : options_(options), vae_(vae.to(options.device, at::kFloat)) {
  model_ = network_model(vae_);
  fused_ = fused_decoder_of(*model_);
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const Simulated drawn = simulate(vae, count, rng);
  images_.pixels = drawn.images;
  images_.latents = drawn.latents;
  images_.source = "simulated";
  std::string weights;
  for (const auto& [name, tensor] : vae.named_tensors()) weights += bytes_of(tensor);
  identity_ = {{"weights", sha256(weights)}, {"images", sha256(bytes_of(drawn.images))}};
}

int64_t VaeExperiment::laplace_cost() const {
  const DecoderPosterior one(model_, images_.pixels.slice(0, 0, 1).to(options_.device), {}, {},
                             fused_);
  at::Generator rng = make_generator(0, options_.device);
  return BaseRegistry::instance().make("base", "laplace")->build(one, rng).cost.densities;
}

Task VaeExperiment::task(const std::string& flags, uint64_t seed) const {
  const EvalSettings settings = settings_of(flags, seed);
  const auto part = [this](const at::Tensor& all, int64_t begin, int64_t end) {
    return all.defined() ? all.slice(0, begin, end).to(options_.device, at::kFloat) : all;
  };
  ProblemSource problems{images_.size(), [this, part](int64_t begin, int64_t end) {
                           return std::make_shared<DecoderPosterior>(
                               model_, part(images_.pixels, begin, end),
                               part(images_.latents, begin, end), at::Tensor(), fused_);
                         }};
  json key = identity_;
  key["settings"] = deciding_settings(settings);
  return {key,
          [options = settings.estimator, problems] { return estimate_cell(options, problems); }};
}

MatchedPlans VaeExperiment::match(const std::string& flags, int64_t steps, int64_t seeds) const {
  VaeExperiment pilots = *this;  // with the images that pilots see
  const int64_t count = std::min(images_.size(), EstimateOptions().pilot_problems);
  pilots.images_.pixels = images_.pixels.slice(0, 0, count);
  if (images_.latents.defined()) pilots.images_.latents = images_.latents.slice(0, 0, count);
  pilots.identity_["limit"] = count;
  return match_variant(flags, steps, [&](const std::vector<Variant>& trials) {
    return pilots.run("plans of " + std::to_string(steps), trials, seeds);
  });
}

std::vector<VariantResult> VaeExperiment::run(const std::string& label,
                                              const std::vector<Variant>& variants, int64_t seeds,
                                              uint64_t first_seed) const {
  return run_variants(
      options_, label, variants, seeds, first_seed,
      [this](const std::string& flags, uint64_t seed) { return task(flags, seed); });
}

}  // namespace crais
