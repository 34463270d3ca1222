#include "programs/train_vae/train_vae.h"

#include <ATen/Parallel.h>

#include <string>

#include "data/images.h"
#include "models/trainer.h"
#include "models/training_state.h"
#include "programs/train_vae/output.h"
#include "programs/train_vae/settings.h"
#include "util/error.h"
#include "util/format.h"
#include "util/parallel.h"

namespace crais {
namespace {

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
      throw data_error(images->source + ": has no images for the " +
                       (images == &data.train ? "train" : "validation") + " split");
  if (data.train.rows != data.validation.rows || data.train.cols != data.validation.cols)
    throw data_error(data.validation.source + ": its images are of another size than those of " +
                     data.train.source);
  return data;
}

CheckpointInfo checkpoint_info(const TrainVaeOptions& options, const Images& train) {
  CheckpointInfo info;
  info.binarisation = to_string(options.trainer.binarisation);
  info.objective = to_string(options.trainer.objective);
  info.data = options.data;
  info.data_md5 = train.md5;
  info.seed = options.trainer.seed;
  return info;
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
      throw Error(ErrorKind::kInterrupted,
                  "interrupted; epoch " + std::to_string(trainer.epoch()) +
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
