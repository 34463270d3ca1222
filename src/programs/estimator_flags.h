// How a log normaliser is estimated: the flags that every estimating program shares.
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

struct RunReport;

/// The groups "Method", "Annealing" and "Pilot" of option_table. `problem` is what the program
/// calls what it estimates a normaliser of, in help and in --per-PROBLEM, --pilot-PROBLEMs.
std::vector<OptionGroup> estimator_options(const std::string& problem);

/// The flag of one field, for a group of the program's own.
Option estimator_option(const std::string& field, const std::string& problem);

/// What is called the same in every estimating program beside how it estimates.
struct RunSettings {
  EstimateOptions estimator;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t threads = 0;
  std::string out;  // empty: no files
  StoreOptions store;
  bool is_shared = false;           // chunks are, with other workers: see resolve_sharing
  int64_t lease = 60;               // seconds after which a silent worker has lost its chunks
  std::optional<int64_t> max_time;  // seconds of the process; chunks that would end later wait
  Format format = Format::kTable;
  bool quiet = false;
  const RunReport* earlier = nullptr;  // finished, of fewer problems, which this run keeps
  bool in_memory = false;   // a function or data of the caller's decide it, which no command names
  nlohmann::json resolved;  // every flag, for the record
};

/// The group "Output", whose folder holds `files`.
OptionGroup output_options(const std::string& files);

/// The values of --preset, other defaults for the flags above: "recommended" and "paper", which is
/// constant rate at a `rate` with as many `chains`.
std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains);

/// The values of the flags above and of --device, --threads, --dtype and --chunk. Names of
/// schedules, paths, kernels and methods are checked when they are made. Throws Error kArgument for
/// values that exclude each other.
RunSettings read_run(const CommandLine& cli, const std::string& problem);

/// Throws Error kArgument for the first flag that was given though an estimate with these options
/// has no use for it. `options` are what the flags have come to.
void refuse_idle(const CommandLine& cli, const EstimateOptions& options,
                 const std::string& problem);

/// Of all flags those that decide results: not where, how fast and how loud. A device enters by its
/// kind, data by digests that stand beside.
nlohmann::json deciding_settings(const RunSettings& settings);

}  // namespace crais
