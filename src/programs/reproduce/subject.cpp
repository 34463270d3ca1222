#include "programs/reproduce/subject.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bases/base.h"
#include "core/rng.h"
#include "data/images.h"
#include "io/json.h"
#include "models/network_model.h"
#include "models/trainer.h"
#include "programs/estimate_logz/settings.h"
#include "programs/eval_loglik/settings.h"
#include "programs/plane.h"
#include "programs/reproduce/variant.h"
#include "targets/decoder_posterior.h"
#include "util/digest.h"

namespace crais {
namespace {

using nlohmann::json;

/// Adds particles of the first run, with equal weights, and the mass of each mode in each run.
void add_cloud(const RunResults& results, int64_t count, json& cell) {
  const ChunkRun& first = results.chunks.begin()->second.runs.front();
  const at::Tensor drawn =
      thinned(first.particles->z[0], first.particles->log_w[0], count, /*seed=*/0);
  cell["x"] = to_column(drawn.select(1, 0));
  cell["y"] = to_column(drawn.select(1, 1));
  const auto modes = first.expectations.find("modes");
  if (modes == first.expectations.end()) return;
  for (int64_t r = 0; r < modes->second.mean.size(0); ++r)
    cell["masses"].push_back(to_column(modes->second.mean[r]));
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.cpu().contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

/// Drawn digits of side x side pixels.
Images small_digits(int64_t side, int64_t count, uint64_t seed) {
  Images images = synthetic_images(count, seed);
  const at::Tensor grey = images.pixels.to(at::kFloat).view({count, 1, images.rows, images.cols});
  images.pixels = at::avg_pool2d(grey, images.rows / side).round().to(at::kByte).view({count, -1});
  images.rows = images.cols = side;
  return images;
}

/// log p(x) [N], nats, of binary images [N, pixels] for a VAE with two latents and Bernoulli
/// pixels.
at::Tensor integrate(const Vae& model, const at::Tensor& images, int64_t points) {
  constexpr double kReach = 7;
  constexpr int64_t kRows = 2;  // rows of the grid at once: they stay in a cache
  const Vae vae = model.to(at::kCPU, at::kDouble);
  const at::Tensor x = images.to(at::kCPU, at::kDouble);
  const at::Tensor axis = at::linspace(-kReach, kReach, points, at::kDouble);
  at::Tensor sum = at::full({x.size(0)}, -INFINITY, at::kDouble);
  for (int64_t begin = 0; begin < points; begin += kRows) {
    const at::Tensor z = at::cartesian_prod({axis.slice(0, begin, begin + kRows), axis});
    const at::Tensor logits = vae.decoder.forward(z);
    const at::Tensor of_z = -0.5 * z.square().sum(1) - at::softplus(logits).sum(1);
    const at::Tensor joint = at::addmm(of_z, x, logits.t());
    sum = at::logaddexp(sum, joint.logsumexp(1));
  }
  const double spacing = 2 * kReach / static_cast<double>(points - 1);
  return sum + std::log(spacing * spacing / (2 * M_PI));
}

}  // namespace

DensitySubject::DensitySubject(const ExperimentOptions& options, std::string target,
                               int64_t replicates)
    : options_(options),
      name_(std::move(target)),
      replicates_(replicates),
      target_(make(at::kDouble)) {}

std::shared_ptr<const Target> DensitySubject::make(at::ScalarType dtype) const {
  return TargetRegistry::instance().make(
      "target", name_,
      {replicates_, at::TensorOptions().device(options_.device).dtype(dtype), options_.data_dir});
}

at::Tensor DensitySubject::truth() const {
  const auto truth = target_->true_log_normalizer();
  return truth ? (*truth)[0].to(at::kDouble) : at::Tensor();
}

at::Tensor DensitySubject::masses() const {
  const auto target = target_->slice(0, 1);
  const auto modes = target->components(at::zeros({1, 1, target->dim()}, target->options()));
  return modes ? modes->masses.to(at::kDouble) : at::Tensor();
}

at::Tensor DensitySubject::exact_draws(int64_t count) const {
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate), options_.device);
  const auto exact = target_->slice(0, 1)->exact_sample(count, rng);
  return exact ? (*exact)[0] : at::Tensor();
}

Task DensitySubject::task(const std::string& flags, uint64_t seed, bool /*for_plans*/,
                          int64_t particles) const {
  const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
  const std::string all = (has("--method") ? "" : "--witness none ") + flags +
                          (has("--base") ? "" : " --base prior") + " --problems " +
                          std::to_string(replicates_);
  const LogzSettings settings =
      read_logz_settings(CommandLine(estimate_logz_synopsis(), arguments_of(name_, all, seed)));
  const auto target = settings.dtype == at::kDouble ? target_ : make(settings.dtype);
  json key;
  if (particles > 0) key["drawn"] = particles;
  key["target"] = name_;
  key["log_density"] = json_number(probe(*target->slice(0, 1)));
  key["settings"] = deciding_settings(settings);
  EstimateOptions estimate = settings.estimator;
  estimate.keep_particles = particles > 0;
  return {key, [estimate, problems = ProblemSource::of(target), particles] {
            return estimate_cell(estimate, problems, [&](const RunResults& results, json& cell) {
              if (particles > 0) add_cloud(results, particles, cell);
            });
          }};
}

VaeSubject::VaeSubject(const ExperimentOptions& options, int64_t count) : options_(options) {
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

VaeSubject::VaeSubject(const ExperimentOptions& options, const Vae& vae, int64_t count,
                       int64_t points)
    : options_(options) {
  set_model(vae);
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const Simulated drawn = simulate(vae, count, rng);
  images_.pixels = drawn.images;
  images_.latents = drawn.latents;
  images_.source = "simulated";
  std::string weights;
  for (const auto& [name, tensor] : vae.named_tensors()) weights += bytes_of(tensor);
  identity_ = {{"weights", sha256(weights)}, {"images", sha256(bytes_of(drawn.images))}};
  truth_ = integrated(points);
}

void VaeSubject::set_model(const Vae& vae) {
  vae_ = vae.to(options_.device, at::kFloat);
  model_ = network_model(vae_);
  fused_ = fused_decoder_of(*model_);
}

Task VaeSubject::task(const std::string& flags, uint64_t seed, bool for_plans,
                      int64_t /*particles*/) const {
  const int64_t count =
      for_plans ? std::min(images_.size(), EstimateOptions().pilot_problems) : images_.size();
  // "-" replaces the path of the checkpoint.
  const EvalSettings settings =
      read_settings(CommandLine(eval_loglik_synopsis(), arguments_of("-", flags, seed)));
  const auto part = [this](const at::Tensor& all, int64_t begin, int64_t end) {
    return all.defined() ? all.slice(0, begin, end).to(options_.device, at::kFloat) : all;
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

Vae small_vae(int64_t side, const std::vector<int64_t>& hidden) {
  VaeArchitecture architecture;
  architecture.image_rows = architecture.image_cols = side;
  architecture.latent = 2;
  architecture.hidden = hidden;
  const c10::AutoGradMode with_gradients(true);
  TrainerOptions options;
  options.epochs = 60;
  options.kl_warmup = 30;
  options.batch = 32;
  options.learning_rate = 3e-3;
  Trainer trainer(make_vae(architecture, 1), options, small_digits(side, 4000, 0),
                  small_digits(side, 500, 1));
  while (!trainer.finished()) trainer.run_epoch();
  return trainer.current();
}

at::Tensor VaeSubject::integrated(int64_t points) const {
  constexpr int64_t kPart = 500;
  const at::Tensor& pixels = images_.pixels;
  std::vector<Task> tasks;
  for (int64_t begin = 0; begin < pixels.size(0); begin += kPart)
    tasks.push_back(
        {{{"integral_of", identity_}, {"points", points}, {"begin", begin}}, [&, begin] {
           const at::Tensor part = pixels.slice(0, begin, begin + kPart);
           return json(to_column(integrate(vae_, part, points)));
         }});
  std::vector<double> all;
  for (const auto& part : run_tasks(options_, "integrals by " + std::to_string(points), tasks))
    for (const auto& value : part) all.push_back(value.get<double>());
  return at::tensor(all, at::kDouble);
}

}  // namespace crais
