// The settings of train-vae.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace crais
