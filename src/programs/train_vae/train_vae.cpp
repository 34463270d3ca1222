#include "programs/train_vae/train_vae.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "core/rng.h"
#include "data/images.h"
#include "models/checkpoint.h"
#include "models/trainer.h"
#include "report/pictures.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"
#include "util/parallel.h"

namespace crais {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSyntheticSeed = 0;  // "synthetic:N" means the same images in every run

struct DataSet {
  Images train;
  Images validation;
};

Images rows(const Images& images, int64_t begin, int64_t end) {
  Images part = images;
  part.pixels = images.pixels.slice(0, begin, end);
  if (images.labels) part.labels = images.labels->slice(0, begin, end);
  part.first_index = images.first_index + begin;
  return part;
}

DataSet load_data(const TrainVaeOptions& options) {
  if (options.synthetic_count > 0) {
    const Images all = synthetic_images(options.synthetic_count, kSyntheticSeed);
    const int64_t cut = all.size() - all.size() / 6;  // as in load_images
    return {rows(all, 0, cut), rows(all, cut, all.size())};
  }
  const auto load = options.data == "amat" ? load_amat : load_images;
  DataSet data{load(options.data_dir, Split::kTrain), load(options.data_dir, Split::kValidation)};
  for (const Images* images : {&data.train, &data.validation})
    if (images->size() == 0)
      throw data_error(images->source, ": has no images for the ",
                       (images == &data.train ? "train" : "validation"), " split");
  if (data.train.rows != data.validation.rows || data.train.cols != data.validation.cols)
    throw data_error(data.validation.source, ": its images are of another size than those of ",
                     data.train.source);
  return data;
}

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

/// The files of a run, all written atomically.
class TrainVaeOutput {
 public:
  TrainVaeOutput(fs::path folder, CheckpointInfo info, nlohmann::json settings)
      : folder_(std::move(folder)), info_(std::move(info)), settings_(std::move(settings)) {}

  /// Makes the folder, and checks that it takes files. If it holds results, they must be resumed or
  /// overwritten; `overwrite` removes them.
  void prepare(bool resume, bool overwrite) const {
    make_output_folder(folder_);
    if (resume) return;
    std::error_code ignored;
    // The state goes first: if the removal is interrupted, nothing is left that could be resumed.
    for (const fs::path& path : {folder_ / kState, checkpoint_path(), folder_ / kMetrics,
                                 folder_ / kSamples, folder_ / kReconstructions}) {
      if (!fs::exists(path, ignored)) continue;
      if (!overwrite)
        throw argument_error(
            folder_.string(), " holds results already (", path.filename().string(),
            "); go on with --resume, replace them with --overwrite, or choose another --out");
      fs::remove(path, ignored);
    }
  }

  /// Returns false if the run has no checkpoint yet.
  bool restore(Trainer& trainer) const {
    const fs::path path = folder_ / kState;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      if (fs::exists(checkpoint_path(), ignored))  // each of our checkpoints has a state beside it
        throw argument_error(folder_.string(), " holds a ", checkpoint_path().filename().string(),
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

  void write_metrics(const Trainer& trainer) const {
    std::string lines;
    for (const EpochMetrics& metrics : trainer.metrics())
      lines += nlohmann::json(metrics).dump() + "\n";
    write_file_atomic(folder_ / kMetrics, lines);
  }

  void write_checkpoint(const Trainer& trainer) const {
    Checkpoint checkpoint{trainer.best(), info_, ""};
    checkpoint.info.epochs = trainer.best_metrics()->epoch;
    checkpoint.info.validation_elbo = trainer.best_metrics()->validation.elbo;
    write_training_state(folder_ / kState, trainer.state(), settings_);
    crais::write_checkpoint(checkpoint_path(), checkpoint);
  }

  /// Writes images decoded from the prior, and some of `originals` beside their reconstructions.
  void write_grids(const Trainer& trainer, const Images& originals) const {
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
    write(kReconstructions,
          at::stack({grey, decoded(vae, vae.encode(grey).mean)}, 1).flatten(0, 1));
  }

  fs::path checkpoint_path() const { return folder_ / "vae.safetensors"; }

 private:
  fs::path folder_;
  CheckpointInfo info_;
  nlohmann::json settings_;  // equal in a resumed run
};

/// Without the fields that each epoch changes.
CheckpointInfo checkpoint_info(const TrainVaeOptions& options, const Images& train) {
  return {.binarisation = to_string(options.trainer.binarisation),
          .objective = to_string(options.trainer.objective),
          .data = options.data,
          .data_md5 = train.md5,
          .seed = options.trainer.seed};
}

std::string status(int64_t epoch, const Trainer& trainer, const TrainerOptions& options,
                   double bound) {
  std::string text = "epoch " + std::to_string(epoch) + "/" + std::to_string(options.epochs) +
                     "  " + to_string(options.objective) + " " + fixed(bound, 2);
  if (const EpochMetrics* best = trainer.best_metrics())
    text += "  validation " + fixed(trainer.metrics().back().validation.bound, 2) + " (best " +
            fixed(best->validation.bound, 2) + ")";
  return text;
}

/// Runs an epoch. Returns false if the observer stopped it; the trainer is then unchanged.
bool run_epoch(Trainer& trainer, const TrainVaeOptions& options, int64_t images,
               TrainingObserver& observer) {
  const int64_t done_before = trainer.epoch() * images;
  const TrainerState before = trainer.state();
  try {
    trainer.run_epoch([&](const TrainProgress& epoch) {
      observer.progress(done_before + epoch.images_done, options.trainer.epochs * images,
                        status(trainer.epoch() + 1, trainer, options.trainer, epoch.bound));
      if (observer.stop()) throw Error(ErrorKind::kInterrupted, "interrupted");
    });
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted) throw;
    trainer.restore(before);
    return false;
  }
}

void train(const TrainVaeOptions& options, const DataSet& data, const TrainVaeOutput& output,
           Trainer& trainer, TrainingObserver& observer) {
  const int64_t images = data.train.size(), total = options.trainer.epochs * images;
  observer.progress(trainer.epoch() * images, total, "");
  while (!trainer.finished()) {
    bool stopped = !run_epoch(trainer, options, images, observer);
    if (stopped && trainer.epoch() == 0)
      throw Error(ErrorKind::kInterrupted, "interrupted in the first epoch: nothing is kept");
    if (!stopped) {
      observer.progress(
          trainer.epoch() * images, total,
          status(trainer.epoch(), trainer, options.trainer, trainer.metrics().back().train.bound));
      output.write_metrics(trainer);
      observer.epoch(trainer.metrics().back());
      stopped = observer.stop() && !trainer.finished();
    }
    if (trainer.epoch() % options.checkpoint_every == 0 || trainer.finished() || stopped)
      output.write_checkpoint(trainer);
    if (stopped)
      throw Error(ErrorKind::kInterrupted, "interrupted; epoch ", trainer.epoch(),
                  " is saved; the same command with --resume goes on from there");
  }
}

}  // namespace

Training train_vae(const TrainVaeOptions& options, TrainingObserver& observer) {
  const at::Device device = parse_device(options.device);
  at::set_num_threads(static_cast<int>(resolve_threads(options.threads)));
  const DataSet data = load_data(options);
  VaeArchitecture architecture = options.architecture;
  architecture.image_rows = data.train.rows;
  architecture.image_cols = data.train.cols;

  const TrainVaeOutput output(
      options.out, checkpoint_info(options, data.train),
      training_settings(options.trainer, architecture, options.data, data.train.md5));
  output.prepare(options.resume, options.overwrite);
  Trainer trainer(make_vae(architecture, options.trainer.seed), options.trainer, data.train,
                  data.validation, device);
  if (options.resume && !output.restore(trainer))
    observer.notice(options.out.string() +
                    " holds no training state yet; starting from the beginning");
  train(options, data, output, trainer, observer);
  output.write_grids(trainer, data.validation);
  return {output.checkpoint_path(), trainer.metrics(), *trainer.best_metrics()};
}

}  // namespace crais
