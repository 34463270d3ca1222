#include "programs/reproduce/subject.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "bases/base.h"
#include "core/rng.h"
#include "core/spec.h"
#include "data/images.h"
#include "io/json.h"
#include "models/checkpoint.h"
#include "models/function_model.h"
#include "models/trainer.h"
#include "programs/estimate_logz/settings.h"
#include "programs/eval_loglik/images.h"
#include "programs/eval_loglik/settings.h"
#include "programs/plane.h"
#include "targets/decoder_posterior.h"
#include "util/digest.h"

namespace crais {
namespace {

using nlohmann::json;

/// The command line of a variant: `operand`, its flags and --seed.
std::vector<std::string> arguments_of(const std::string& operand, const std::string& flags,
                                      uint64_t seed) {
  std::vector<std::string> arguments = split(operand + " " + flags, ' ');
  std::erase(arguments, "");
  arguments.insert(arguments.end(), {"--seed", std::to_string(seed)});
  return arguments;
}

/// Adds `x` and `y` of particles of the first run, with equal weights, and the `masses` of the
/// modes, run by run.
void add_cloud(const RunResults& results, int64_t count, json& cell) {
  const ChunkRun& first = results.chunks.begin()->second.runs.front();
  const at::Tensor drawn =
      thinned(first.particles->z[0], first.particles->log_w[0], count, /*seed=*/0);
  cell["x"] = to_column(drawn.select(1, 0));
  cell["y"] = to_column(drawn.select(1, 1));
  const auto modes = first.expectations.find("modes");
  if (modes != first.expectations.end()) cell["masses"] = to_column(modes->second.mean.flatten());
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

/// The same in tasks of some images each.
at::Tensor integrated(const ExperimentOptions& options, const Vae& vae, const at::Tensor& images,
                      int64_t points, const json& identity) {
  constexpr int64_t kPart = 500;
  std::vector<Task> tasks;
  for (int64_t begin = 0; begin < images.size(0); begin += kPart)
    tasks.push_back(
        {{{"integral_of", identity}, {"points", points}, {"begin", begin}}, [&, begin] {
           return json(to_column(integrate(vae, images.slice(0, begin, begin + kPart), points)));
         }});
  std::vector<double> all;
  for (const auto& part : run_tasks(options, "integrals by " + std::to_string(points), tasks))
    for (const auto& value : part) all.push_back(value.get<double>());
  return at::tensor(all, at::kDouble);
}

/// Images [N, pixels] under a VAE. `identity` names both in the keys of tasks.
Subject images_subject(at::Device device, const Vae& vae, const at::Tensor& pixels,
                       const at::Tensor& latents, const json& identity) {
  const std::shared_ptr<const LatentModel> model = network_model(vae.to(device, at::kFloat));
  const auto part = [device](const at::Tensor& all, int64_t begin, int64_t end) {
    return all.defined() ? all.slice(0, begin, end).to(device, at::kFloat) : all;
  };
  const ProblemSource all{
      pixels.size(0), [=, fused = fused_decoder_of(*model)](int64_t begin, int64_t end) {
        return std::make_shared<DecoderPosterior>(model, part(pixels, begin, end),
                                                  part(latents, begin, end), at::Tensor(), fused);
      }};
  Subject subject;
  subject.has_images = true;
  subject.task = [=](const std::string& flags, uint64_t seed, bool for_plans) -> Task {
    // "-" replaces the path of the checkpoint.
    const EvalSettings settings =
        read_settings(CommandLine(eval_loglik_synopsis(), arguments_of("-", flags, seed)));
    ProblemSource problems = all;
    json key = identity;
    key["settings"] = deciding_settings(settings);
    if (for_plans)
      key["limit"] = problems.count = std::min(all.count, EstimateOptions().pilot_problems);
    return {key, [estimate = settings.estimator, problems] {
              return estimate_cell(estimate, problems);
            }};
  };
  return subject;
}

}  // namespace

Subject density_subject(const ExperimentOptions& options, const std::string& name,
                        int64_t replicates, int64_t particles) {
  const auto make = [=](at::ScalarType dtype) {
    return TargetRegistry::instance().make(
        "target", name,
        {replicates, at::TensorOptions().device(options.device).dtype(dtype), options.data_dir});
  };
  const std::shared_ptr<const Target> target = make(at::kDouble), one = target->slice(0, 1);
  Subject subject;
  if (const auto truth = target->true_log_normalizer()) subject.truth = (*truth)[0].to(at::kDouble);
  if (particles > 0) {
    if (const auto modes = one->components(at::zeros({1, 1, one->dim()}, one->options())))
      subject.masses = modes->masses.to(at::kDouble);
    at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate), options.device);
    if (const auto exact = one->exact_sample(particles, rng)) subject.draws = (*exact)[0];
  }
  subject.task = [=](const std::string& flags, uint64_t seed, bool) -> Task {
    const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
    const std::string all = (has("--method") ? "" : "--witness none ") + flags +
                            (has("--base") ? "" : " --base prior") + " --problems " +
                            std::to_string(replicates);
    const LogzSettings settings =
        read_logz_settings(CommandLine(estimate_logz_synopsis(), arguments_of(name, all, seed)));
    const auto typed = settings.dtype == at::kDouble ? target : make(settings.dtype);
    json key;
    if (particles > 0) key["drawn"] = particles;
    key["target"] = name;
    key["log_density"] = json_number(probe(*typed->slice(0, 1)));
    key["settings"] = deciding_settings(settings);
    EstimateOptions estimate = settings.estimator;
    estimate.keep_particles = particles > 0;
    return {key, [=, problems = ProblemSource::of(typed)] {
              return estimate_cell(estimate, problems, [&](const RunResults& results, json& cell) {
                if (particles > 0) add_cloud(results, particles, cell);
              });
            }};
  };
  return subject;
}

Subject checkpoint_subject(const ExperimentOptions& options, int64_t count) {
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint);
  ImageSettings settings;
  settings.data_dir = options.data_dir;
  settings.split = "test";
  settings.limit = count;
  std::string notice;
  const EvalModel model = checkpoint_model(checkpoint, options.device, at::kFloat);
  const EvalImages images = choose_images(settings, model, notice);
  return images_subject(options.device, checkpoint.vae, images.pixels, images.latents,
                        {{"checkpoint", checkpoint.sha256}, {"images", images.digest}});
}

Subject vae_subject(const ExperimentOptions& options, const Vae& vae, int64_t count,
                    int64_t points) {
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const Simulated drawn = simulate(vae, count, rng);
  std::string weights;
  for (const auto& [name, tensor] : vae.named_tensors()) weights += bytes_of(tensor);
  const json identity = {{"weights", sha256(weights)}, {"images", sha256(bytes_of(drawn.images))}};
  Subject subject = images_subject(options.device, vae, drawn.images, drawn.latents, identity);
  subject.truth = integrated(options, vae, drawn.images, points, identity);
  return subject;
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

}  // namespace crais
