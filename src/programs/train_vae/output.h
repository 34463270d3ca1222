// The files of a training run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/images.h"
#include "models/checkpoint.h"
#include "models/trainer.h"

namespace crais {

/// Writes, all atomically: vae.safetensors (the best weights so far), training-state.safetensors
/// (for --resume), metrics.jsonl (a line an epoch), samples.png, reconstructions.png.
class TrainVaeOutput {
 public:
  /// `info` is the checkpoint's, less what each epoch changes; `settings` what a resumed run must
  /// repeat.
  TrainVaeOutput(std::filesystem::path folder, CheckpointInfo info, nlohmann::json settings);

  /// The folder exists and takes files, and no results lie in it unless they may be resumed or
  /// are to be overwritten; then they are removed. Throws Error kCannotCreate or kArgument.
  void prepare(bool resume, bool overwrite) const;

  /// False if the run had not come to its first checkpoint. Throws as read_training_state does, and
  /// kArgument if another training's checkpoint lies there.
  bool restore(Trainer& trainer) const;

  void write_metrics(const Trainer& trainer) const;
  void write_checkpoint(const Trainer& trainer) const;
  /// Images decoded from the prior, and some of `originals` each beside its reconstruction.
  void write_grids(const Trainer& trainer, const Images& originals) const;

  std::filesystem::path checkpoint_path() const { return folder_ / "vae.safetensors"; }

 private:
  std::filesystem::path folder_;
  CheckpointInfo info_;
  nlohmann::json settings_;
};

}  // namespace crais
