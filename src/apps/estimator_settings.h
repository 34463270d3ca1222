// How a log normaliser is estimated: the flags that every estimating program shares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli.h"
#include "core/schedule.h"
#include "core/transition.h"
#include "samplers/plan.h"

namespace crais {

struct EstimatorSettings {
  std::vector<std::string> methods;  // "ais", "iwae:5000", "elbo"
  std::string schedule;
  std::string path;
  std::string base;
  std::string kernel;
  std::string resample;  // empty: never
  ScheduleOptions schedule_options;
  TransitionOptions transition_options;
  PilotOptions pilot;
  int64_t pilot_problems = 0;  // a shared plan is tuned on the first so many
  int64_t chains = 0;
  std::optional<double> budget;        // evaluations of each problem, all told
  std::optional<double> target_error;  // nats, of each problem
  double max_evaluations = 0;          // of each problem, under target_error
  int64_t repeats = 1;
  uint64_t seed = 0;
};

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
