// How a log normaliser is estimated: the flags that every estimating program shares.
#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "evaluation/options.h"
#include "evaluation/result_store.h"

namespace crais {

/// The groups "Method", "Annealing" and "Pilot", whose defaults are those of EstimateOptions but
/// for the base. `problem` is what the program calls what it estimates a normaliser of, in help and
/// in --per-PROBLEM, --pilot-PROBLEMs.
std::vector<OptionGroup> estimator_options(const std::string& problem,
                                           const std::string& default_base);

/// The flags of a result folder.
namespace store {
Option resume();
Option overwrite();
Option accept_other_version();
}  // namespace store
/// Their values. Throws Error kArgument without --out, and for values that exclude each other.
StoreOptions read_store(const CommandLine& cli);

/// --format; read by parse_format.
Option format_option();

/// The values of --preset, other defaults for the flags above: "recommended" and "paper", which is
/// constant rate at a `rate` with as many `chains`.
std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains);

/// Their values. Names of schedules, paths, kernels and methods are checked when they are made.
/// Throws Error kArgument for values that exclude each other.
EstimateOptions read_estimator(const CommandLine& cli, const std::string& problem);

/// Of all resolved flags those that decide results: not where, how fast and how loud; a device
/// enters by its kind.
nlohmann::json deciding(nlohmann::json resolved, c10::Device device);

}  // namespace crais
