#include "programs/train_vae/output.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/rng.h"
#include "models/training_state.h"
#include "report/pictures.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kGridSide = 10;
constexpr const char* kState = "training-state.safetensors";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kSamples = "samples.png";
constexpr const char* kReconstructions = "reconstructions.png";

/// The mean image of each z.
at::Tensor decoded(const Vae& vae, const at::Tensor& z) {
  const at::Tensor output = vae.decoder.forward(z);
  return vae.architecture.likelihood.mean(output);
}

}  // namespace

TrainVaeOutput::TrainVaeOutput(fs::path folder, CheckpointInfo info, nlohmann::json settings)
    : folder_(std::move(folder)), info_(std::move(info)), settings_(std::move(settings)) {}

void TrainVaeOutput::prepare(bool resume, bool overwrite) const {
  make_output_folder(folder_);
  if (resume) return;
  std::error_code ignored;
  // The state goes first: if the removal is interrupted, nothing is left that could be resumed.
  for (const fs::path& path : {folder_ / kState, checkpoint_path(), folder_ / kMetrics,
                               folder_ / kSamples, folder_ / kReconstructions}) {
    if (!fs::exists(path, ignored)) continue;
    if (!overwrite)
      throw argument_error(
          folder_.string() + " holds results already (" + path.filename().string() +
          "); go on with --resume, replace them with --overwrite, or choose another "
          "--out");
    fs::remove(path, ignored);
  }
}

bool TrainVaeOutput::restore(Trainer& trainer) const {
  const fs::path path = folder_ / kState;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (fs::exists(checkpoint_path(), ignored))  // each of our checkpoints has a state beside it
      throw argument_error(folder_.string() + " holds a " + checkpoint_path().filename().string() +
                           " that this training has not written; replace it with --overwrite, or "
                           "choose another --out");
    return false;
  }
  const TrainerState state = read_training_state(path, settings_);
  try {
    trainer.restore(state);
  } catch (const Error& error) {
    throw Error(error.kind(), path.string() + ": " + error.what());
  }
  write_checkpoint(trainer);  // in case the run was killed before it wrote the checkpoint
  return true;
}

void TrainVaeOutput::write_metrics(const Trainer& trainer) const {
  std::string lines;
  for (const EpochMetrics& metrics : trainer.metrics())
    lines += nlohmann::json(metrics).dump() + "\n";
  write_file_atomic(folder_ / kMetrics, lines);
}

void TrainVaeOutput::write_checkpoint(const Trainer& trainer) const {
  Checkpoint checkpoint{trainer.best(), info_, ""};
  checkpoint.info.epochs = trainer.best_metrics()->epoch;
  checkpoint.info.validation_elbo = trainer.best_metrics()->validation.elbo;
  write_training_state(folder_ / kState, trainer.state(), settings_);
  crais::write_checkpoint(checkpoint_path(), checkpoint);
}

void TrainVaeOutput::write_grids(const Trainer& trainer, const Images& originals) const {
  const c10::NoGradGuard no_grad;
  const Vae vae = trainer.best();
  const auto write = [&](const char* name, const at::Tensor& images) {
    write_image_grid(folder_ / name, images, originals.rows, originals.cols, kGridSide);
  };
  at::Generator generator = make_generator(derive_seed(info_.seed, Purpose::kSimulate));
  write(kSamples,
        decoded(vae, at::randn({kGridSide * kGridSide, vae.architecture.latent}, generator)));
  const int64_t count = std::min(kGridSide * kGridSide / 2, originals.size());
  const at::Tensor grey = originals.pixels.slice(0, 0, count).to(at::kFloat).div(255.0);
  write(kReconstructions, at::stack({grey, decoded(vae, vae.encode(grey).mean)}, 1).flatten(0, 1));
}

}  // namespace crais
