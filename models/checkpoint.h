/// @file
/// A checkpoint: a VAE in one safetensors file, with its origin in the metadata.
#pragma once

#include <filesystem>
#include <string>

#include "models/vae.h"

namespace crais {

/// The description of a checkpoint, without its tensors.
struct CheckpointInfo {
  std::string binarisation = "dynamic";  // of the training images (data/binarisation.h)
  std::string objective = "elbo";
  std::string data;      // origin of the images ("mnist", "synthetic", a path)
  std::string data_md5;  // of the uncompressed training images
  uint64_t seed = 0;
  int64_t epochs = 0;            // the epoch of these weights
  double validation_elbo = 0.0;  // nats per image
  std::string libtorch_version;
};

struct Checkpoint {
  Vae vae;
  CheckpointInfo info;
  std::string sha256;  // of the file; of a checkpoint that was read
};

/// Throws Error: kNoInput if the file is missing; kData that says what is wrong and what was
/// expected, if the file is damaged, hostile or of another format version, or if its tensors are
/// missing, misshapen or not finite.
Checkpoint read_checkpoint(const std::filesystem::path& path);
/// The checkpoint in the bytes of a file, which `file` names in messages.
Checkpoint parse_checkpoint(const std::string& bytes, const std::string& file);

/// Writes atomically (util/files.h).
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

}  // namespace crais
