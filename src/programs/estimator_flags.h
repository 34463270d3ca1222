// How a log normaliser is estimated: the flags that every estimating program shares.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "evaluation/options.h"

namespace crais {

/// The groups "Method", "Annealing" and "Pilot". `problem` is what the program calls what it
/// estimates a normaliser of, in help and in --per-PROBLEM, --pilot-PROBLEMs.
std::vector<OptionGroup> estimator_options(const std::string& problem,
                                           const std::string& default_base);

/// The values of --preset, other defaults for the flags above: "recommended" and "paper", which is
/// constant rate at a `rate` with as many `chains`.
std::vector<Preset> estimator_presets(const std::string& paper_summary, const std::string& rate,
                                      const std::string& chains);

/// Their values. Names of schedules, paths, kernels and methods are checked when they are made.
/// Throws Error kUsage for values that exclude each other.
EstimatorSettings read_estimator(const CommandLine& cli, const std::string& problem);

}  // namespace crais
