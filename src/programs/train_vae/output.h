// The files of a training run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/images.h"
#include "models/checkpoint.h"
#include "models/trainer.h"

namespace crais {

/// Writes the files, all atomically: vae.safetensors (the best weights so far),
/// training-state.safetensors (for --resume), metrics.jsonl (a line for each epoch), samples.png,
/// reconstructions.png.
class TrainVaeOutput {
 public:
  /// `info` describes the checkpoint, without the fields that each epoch changes. `settings` must
  /// be equal in a resumed run.
  TrainVaeOutput(std::filesystem::path folder, CheckpointInfo info, nlohmann::json settings);

  /// Makes the folder, and checks that it takes files. If it holds results, they must be resumed or
  /// overwritten; `overwrite` removes them. Throws Error kCannotCreate or kArgument.
  void prepare(bool resume, bool overwrite) const;

  /// Restores the state. Returns false if the run has no checkpoint yet. Throws as
  /// read_training_state does, and kArgument if the folder holds a checkpoint of another training.
  bool restore(Trainer& trainer) const;

  void write_metrics(const Trainer& trainer) const;
  void write_checkpoint(const Trainer& trainer) const;
  /// Writes images decoded from the prior, and some of `originals` beside their reconstructions.
  void write_grids(const Trainer& trainer, const Images& originals) const;

  std::filesystem::path checkpoint_path() const { return folder_ / "vae.safetensors"; }

 private:
  std::filesystem::path folder_;
  CheckpointInfo info_;
  nlohmann::json settings_;
};

}  // namespace crais
