// The settings of eval-loglik.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "programs/estimator_flags.h"
#include "programs/eval_loglik/model.h"

namespace crais {

/// The choice of images, and the conversion of their pixels to numbers.
struct ImageSettings {
  std::string data;    // FILE[:KEY]; empty: MNIST
  std::string labels;  // FILE[:KEY]; empty: the labels beside the images
  std::string data_dir;
  std::string split;
  std::string binarisation;            // empty: as in the model's training
  std::string indices;                 // "A:B"
  std::optional<double> scale;         // divisor of stored numbers
  std::optional<uint64_t> dequantise;  // seed of uniform noise, added before the division
  std::optional<int64_t> limit;
  std::optional<int64_t> simulate;
  uint64_t seed = 0;
  std::set<std::string> given;  // flags of the command line
};

struct EvalSettings : RunSettings {
  std::string checkpoint;
  ScriptOptions script;  // for a decoder in TorchScript
  ImageSettings images;
  Shard shard;
  std::optional<int64_t> control;  // images; absent: default_control
  bool dry_run = false;
  bool accept_prior = false;  // even if it does not integrate to 1
};

Synopsis eval_loglik_synopsis();
/// The settings of an evaluation of the file that is the first operand.
EvalSettings read_settings(const CommandLine& cli);

}  // namespace crais
