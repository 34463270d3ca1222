// Training of a VAE for the program and for Python: from images to a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "models/trainer.h"
#include "models/vae.h"

namespace crais {

struct TrainVaeOptions {
  std::string data_dir;
  std::string data;  // "mnist", "amat" or "synthetic:N"
  int64_t synthetic_count = 0;
  std::filesystem::path out;
  VaeArchitecture architecture;  // its image size comes from the data
  TrainerOptions trainer;
  std::string device;
  int64_t checkpoint_every = 1;
  int64_t threads = 1;
  bool resume = false;
  bool overwrite = false;
  bool quiet = false;
};

Synopsis train_vae_synopsis();

/// Throws Error kArgument that names the flag.
TrainVaeOptions train_vae_options(const CommandLine& cli);

/// Receives the progress of a training, in one thread.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  /// `done` of `total` images are done, counted over all epochs.
  virtual void progress(int64_t /*done*/, int64_t /*total*/, const std::string& /*status*/) {}
  /// An epoch is done and its metrics are written.
  virtual void epoch(const EpochMetrics& /*metrics*/) {}
  virtual void notice(const std::string& /*line*/) {}
  /// Called between batches, at most five times a second, and after each epoch. Return true to
  /// stop.
  virtual bool stop() { return false; }
};

struct Training {
  std::filesystem::path checkpoint;
  std::vector<EpochMetrics> epochs;
  EpochMetrics best;  // epoch with the best validation bound, whose weights the checkpoint has
};

/// Trains, and writes vae.safetensors (the best weights so far), training-state.safetensors (for
/// --resume), metrics.jsonl (a line for each epoch), samples.png and reconstructions.png. If the
/// observer stops it, saves the state and throws Error kInterrupted. Throws as read_training_state
/// does, kCannotCreate, and kArgument if the folder holds other results.
Training train_vae(const TrainVaeOptions& options, TrainingObserver& observer);

/// The program: trains, and returns the exit code.
int train_vae(int argc, char** argv);

}  // namespace crais
