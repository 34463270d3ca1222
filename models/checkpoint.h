/// @file
/// A checkpoint: a VAE in one safetensors file, with how it was made in its metadata.
#pragma once

#include <filesystem>
#include <string>

#include "models/vae.h"

namespace crais {

/// What is known of a checkpoint besides its tensors.
struct CheckpointInfo {
  std::string binarisation = "dynamic";  // as training saw the images (data/binarisation.h)
  std::string objective = "elbo";
  std::string data;      // where the images came from ("mnist", "synthetic", a path)
  std::string data_md5;  // of the uncompressed training images
  uint64_t seed = 0;
  int64_t epochs = 0;            // the epoch these weights are of
  double validation_elbo = 0.0;  // nats per image
  std::string libtorch_version;
};

struct StateDict;

struct Checkpoint {
  Vae vae;
  CheckpointInfo info;
  std::string sha256;  // of the file; filled by read_checkpoint
};

/// Throws Error: kNoInput if the file is missing; kData, naming what is wrong and what was
/// expected, if it is damaged, hostile, of another format version, or its tensors are missing,
/// misshapen or not finite.
Checkpoint read_checkpoint(const std::filesystem::path& path);
/// The same of a file that was read. Its metadata have "crais".
Checkpoint checkpoint_of(const StateDict& content);

/// Atomic (util/files.h).
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

}  // namespace crais
