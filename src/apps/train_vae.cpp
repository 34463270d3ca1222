#include "apps/train_vae.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <csignal>
#include <cstdio>
#include <cxxopts.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "core/rng.h"
#include "core/spec.h"
#include "data/images.h"
#include "models/checkpoint.h"
#include "models/trainer.h"
#include "models/training_state.h"
#include "report/image_grid.h"

namespace crais {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kGridSide = 10;

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

struct Settings {
  std::string data_dir, data;
  fs::path out;
  VaeArchitecture architecture;
  TrainerOptions trainer;
  int64_t checkpoint_every = 1;
  int threads = 1;
  bool resume = false, overwrite = false, quiet = false;
};

std::vector<int64_t> parse_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const auto& part : split(text, ',')) sizes.push_back(parse_integer(part, "--hidden"));
  return sizes;
}

Settings parse(int argc, const char* const* argv, bool& help) {
  cxxopts::Options options("train-vae", "Trains a VAE on images.");
  auto add = options.add_options();
  const auto text = [](const char* fallback) {
    return cxxopts::value<std::string>()->default_value(fallback);
  };
  add("data-dir", "", text(""));
  add("data", "", text("mnist"));
  add("out", "", text("results/train"));
  add("latent", "", text("50"));
  add("hidden", "", text("200,200"));
  add("act", "", text("tanh"));
  add("likelihood", "", text("bernoulli"));
  add("objective", "elbo | iwae:K", text("elbo"));
  add("lr", "", text("0.001"));
  add("betas", "", text("0.9,0.999"));
  add("decay", "none | cosine:FINAL | exponential:FINAL | step:FACTOR,every=EPOCHS", text("none"));
  add("batch", "", text("128"));
  add("epochs", "", text("100"));
  add("patience", "", text("0"));
  add("kl-warmup", "", text("0"));
  add("binarisation", "", text("dynamic"));
  add("checkpoint-every", "", text("1"));
  add("seed", "", text("1"));
  add("threads", "", text("1"));
  add("resume", "");
  add("overwrite", "");
  add("quiet", "");
  add("help", "");
  const auto flags = [&] {
    try {
      return options.parse(argc, argv);
    } catch (const std::exception& error) {
      throw usage_error(error.what());
    }
  }();
  help = flags.count("help") > 0;
  if (help) std::printf("%s\n", options.help().c_str());
  const auto get = [&](const char* name) { return flags[name].as<std::string>(); };
  const auto integer = [&](const char* name) { return parse_integer(get(name), name); };

  Settings settings;
  settings.data_dir = get("data-dir");
  settings.data = get("data");
  settings.out = get("out");
  settings.architecture.latent = integer("latent");
  settings.architecture.hidden = parse_sizes(get("hidden"));
  settings.architecture.activation = parse_activation(get("act"));
  settings.architecture.likelihood = parse_likelihood(get("likelihood"));
  TrainerOptions& trainer = settings.trainer;
  trainer.objective = parse_objective(get("objective"));
  trainer.learning_rate = parse_number(get("lr"), "--lr");
  const auto betas = split(get("betas"), ',');
  if (betas.size() != 2) throw usage_error("--betas: two numbers are needed, as in 0.9,0.999");
  trainer.beta1 = parse_number(betas[0], "--betas");
  trainer.beta2 = parse_number(betas[1], "--betas");
  trainer.decay = parse_decay(get("decay"));
  trainer.batch = integer("batch");
  trainer.epochs = integer("epochs");
  trainer.patience = integer("patience");
  trainer.kl_warmup = integer("kl-warmup");
  trainer.seed = static_cast<uint64_t>(integer("seed"));
  trainer.binarisation = parse_binarisation(get("binarisation"));
  settings.checkpoint_every = integer("checkpoint-every");
  settings.threads = static_cast<int>(integer("threads"));
  settings.resume = flags.count("resume") > 0;
  settings.overwrite = flags.count("overwrite") > 0;
  settings.quiet = flags.count("quiet") > 0;
  return settings;
}

struct DataSet {
  Images train, validation;
};

DataSet load_data(const Settings& settings) {
  return {load_images(settings.data_dir, Split::kTrain),
          load_images(settings.data_dir, Split::kValidation)};
}

/// The files of a run, written from the trainer's state.
class Output {
 public:
  Output(const Settings& settings, const DataSet& data)
      : folder_(settings.out),
        validation_(data.validation),
        seed_(settings.trainer.seed),
        run_(training_settings(settings.trainer, settings.architecture, settings.data,
                               data.train.md5)) {
    info_.binarisation = to_string(settings.trainer.binarisation);
    info_.objective = to_string(settings.trainer.objective);
    info_.data = settings.data;
    info_.data_md5 = data.train.md5;
    info_.seed = seed_;
  }

  fs::path state_file() const { return folder_ / "training-state.safetensors"; }

  void restore(Trainer& trainer) const { trainer.restore(read_training_state(state_file(), run_)); }

  void write_metrics(const Trainer& trainer) const {
    std::string lines;
    for (const EpochMetrics& metrics : trainer.metrics())
      lines += nlohmann::json(metrics).dump() + "\n";
    write_file_atomic(folder_ / "metrics.jsonl", lines);
  }

  void write_weights(const Trainer& trainer) const {
    Checkpoint checkpoint{trainer.best(), info_, ""};
    checkpoint.info.epochs = trainer.best_metrics()->epoch;
    checkpoint.info.validation_elbo = trainer.best_metrics()->validation.elbo;
    write_checkpoint(folder_ / "vae.safetensors", checkpoint);
    // Last: a run is resumed from a state whose checkpoint is already there.
    write_training_state(state_file(), trainer.state(), run_);
  }

  void write_images(const Trainer& trainer) const {
    const c10::NoGradGuard no_grad;
    const Vae vae = trainer.best();
    at::Generator generator = make_generator(derive_seed(seed_, Purpose::kSimulate));
    write_grid("samples.png", decoded(vae, at::randn({kGridSide * kGridSide,
                                                      vae.architecture.latent}, generator)));
    // Each original beside its reconstruction.
    const int64_t count = std::min(kGridSide * kGridSide / 2, validation_.size());
    const at::Tensor originals =
        validation_.pixels.slice(0, 0, count).to(at::kFloat).div(255.0);
    const at::Tensor reconstructed = decoded(vae, vae.encode(originals).mean);
    write_grid("reconstructions.png", at::stack({originals, reconstructed}, 1).flatten(0, 1));
  }

 private:
  static at::Tensor decoded(const Vae& vae, const at::Tensor& z) {
    const at::Tensor output = vae.decoder.forward(z);
    const bool logits = vae.architecture.likelihood.family == Likelihood::Family::kBernoulli;
    return logits ? output.sigmoid() : output;
  }
  void write_grid(const char* name, const at::Tensor& images) const {
    write_image_grid(folder_ / name, images, validation_.rows, validation_.cols, kGridSide);
  }

  fs::path folder_;
  const Images& validation_;
  uint64_t seed_;
  nlohmann::json run_;
  CheckpointInfo info_;
};

}  // namespace

int train_vae(int argc, const char* const* argv) {
  bool help = false;
  Settings settings = parse(argc, argv, help);
  if (help) return 0;
  at::set_num_threads(settings.threads);
  const DataSet data = load_data(settings);
  settings.architecture.image_rows = data.train.rows;
  settings.architecture.image_cols = data.train.cols;
  make_output_folder(settings.out);
  const Output output(settings, data);
  if (fs::exists(output.state_file()) && !settings.resume && !settings.overwrite)
    throw usage_error(settings.out.string() +
                      " holds results already; continue with --resume or replace with --overwrite");

  Trainer trainer(make_vae(settings.architecture, settings.trainer.seed), settings.trainer,
                  data.train, data.validation);
  if (settings.resume && fs::exists(output.state_file())) output.restore(trainer);
  std::signal(SIGINT, on_interrupt);
  while (!trainer.finished() && !interrupted) {
    const EpochMetrics& metrics = trainer.run_epoch();
    output.write_metrics(trainer);
    if (trainer.epoch() % settings.checkpoint_every == 0 || trainer.finished() || interrupted)
      output.write_weights(trainer);
    if (!settings.quiet)
      std::fprintf(stderr, "epoch %ld: train %.2f, validation %.2f (ELBO %.2f), %.2f s\n",
                   static_cast<long>(metrics.epoch), metrics.train.bound, metrics.validation.bound,
                   metrics.validation.elbo, metrics.seconds);
  }
  if (interrupted) {
    std::fprintf(stderr, "interrupted after epoch %ld; add --resume to continue\n",
                 static_cast<long>(trainer.epoch()));
    return static_cast<int>(ExitCode::kInterrupted);
  }
  output.write_images(trainer);
  return 0;
}

}  // namespace crais
