// What estimate-logz is asked to do.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command_line.h"
#include "evaluation/options.h"
#include "evaluation/result_store.h"
#include "programs/estimator_flags.h"
#include "report/estimates.h"

namespace crais {

struct LogzSettings {
  std::string target;  // "normal:128"
  EstimateOptions estimator;
  int64_t problems = 0;  // replicates
  std::string data_dir;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kDouble;
  int64_t threads = 0;
  std::string out;  // empty: no files
  StoreOptions store;
  Format format = Format::kTable;
  bool quiet = false;
  nlohmann::json resolved;  // every flag, for the record
};

Synopsis estimate_logz_synopsis();
LogzSettings read_logz_settings(const CommandLine& cli);

/// The flags that decide results: `resolved` less those that only say where, how fast and how loud.
nlohmann::json deciding_settings(const LogzSettings& settings);

}  // namespace crais
