// Training a VAE, for the program and for Python: images in, a checkpoint out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/trainer.h"
#include "programs/train_vae/settings.h"

namespace crais {

/// Hears how a training goes, in one thread.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  /// So many images of all epochs together are done.
  virtual void progress(int64_t /*done*/, int64_t /*total*/, const std::string& /*status*/) {}
  /// An epoch is done, and its metrics are written.
  virtual void epoch(const EpochMetrics& /*metrics*/) {}
  virtual void notice(const std::string& /*line*/) {}
  /// Asked between batches, five times a second at most, and after each epoch.
  virtual bool stop() { return false; }
};

struct Training {
  std::filesystem::path checkpoint;
  std::vector<EpochMetrics> epochs;
  EpochMetrics best;  // by its validation bound: its weights are in the checkpoint
};

/// Trains, and writes what TrainVaeOutput does. Throws Error kInterrupted, with a saved state,
/// where the observer stopped it.
Training train_vae(const TrainVaeOptions& options, TrainingObserver& observer);

}  // namespace crais
