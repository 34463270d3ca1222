// The flags for estimating a log normaliser, which every estimating program shares.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "evaluation/chunks.h"
#include "evaluation/options.h"
#include "report/estimates.h"

namespace crais {

/// The groups "Method", "Annealing" and "Pilot" of option_table. `problem` is the program's word
/// for a problem, in help and in --per-PROBLEM, --pilot-PROBLEMs.
std::vector<OptionGroup> estimator_options(const std::string& problem);

/// The flag of one field, for another group of the program.
Option estimator_option(const std::string& field, const std::string& problem);

/// Settings of a run that are equal in every estimating program, besides the estimator.
struct RunSettings {
  EstimateOptions estimator;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t threads = 0;
  std::string out;  // empty: no files
  StoreOptions store;
  std::optional<Shard> part;        // of a process that shares the folder: see resolve_sharing
  std::optional<int64_t> max_time;  // seconds of the process; no chunk may end later
  std::string format = "table";     // of what is printed
  bool quiet = false;
  bool in_memory = false;   // a function or data of the caller's decide it: no command repeats it
  nlohmann::json resolved;  // every flag, for the record
};

/// The group "Output"; `files` describes the content of the folder.
OptionGroup output_options(const std::string& files);

/// The values of --preset, which change the defaults of the flags above: "recommended", and "paper"
/// with constant rate at `rate` and `chains` chains.
std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains);

/// The values of the flags above and of --device, --threads, --dtype and --chunk. Names of
/// schedules, paths, kernels and methods are checked later, when the objects are made. Throws Error
/// kArgument for values that exclude each other.
RunSettings read_run(const CommandLine& cli, const std::string& problem);

/// Throws Error kArgument for the first given flag that has no effect on an estimate with these
/// options. `options` are the values of the flags.
void refuse_idle(const CommandLine& cli, const EstimateOptions& options,
                 const std::string& problem);

/// True if a flag says how long chains are.
bool given_length(const CommandLine& cli);

/// The flags that determine results: not those on place, speed and output. A device is represented
/// by its kind, data by digests elsewhere.
nlohmann::json deciding_settings(const RunSettings& settings);

}  // namespace crais
