// What eval-loglik is asked to do.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "evaluation/options.h"
#include "evaluation/result_store.h"
#include "programs/estimator_flags.h"
#include "report/estimates.h"

namespace crais {

/// Which images, and how their pixels become numbers.
struct ImageSettings {
  std::string data_dir;
  std::string split;
  std::string binarisation;  // empty: as the checkpoint was trained
  std::string indices;       // "A:B"
  std::optional<int64_t> limit;
  std::optional<int64_t> simulate;
  uint64_t seed = 0;
};

struct EvalSettings {
  std::string checkpoint;
  EstimateOptions estimator;
  ImageSettings images;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t threads = 0;
  std::optional<int64_t> memory_limit;  // bytes
  Shard shard;
  std::string out;  // empty: no files
  StoreOptions store;
  bool dry_run = false;
  Format format = Format::kTable;
  bool quiet = false;
  nlohmann::json resolved;  // every flag, for the record
};

Synopsis eval_loglik_synopsis();
EvalSettings read_settings(const CommandLine& cli);

/// The flags that decide results: `resolved` less those that only say where, how fast and how loud.
nlohmann::json deciding_settings(const EvalSettings& settings);

}  // namespace crais
