/// @file
/// How a log normaliser is estimated: every default of an estimate. Programs take them from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.h"
#include "samplers/plan.h"

namespace crais {

/// What to estimate with, on what, and for how much. option_table.cpp says the rest. Names are
/// specifications of the registries: "iwae:5000", "constant-rate:32,max-step=0.1".
///
///     crais::EstimateOptions options{.chains = 32, .seed = 1, .schedule = "cess:0.9"};
struct EstimateOptions {
  std::vector<std::string> methods = {"ais"};  ///< of MethodRegistry
  std::string base = "auto";                   ///< of BaseRegistry, or "auto": see choose_base
  int64_t chains = 8;                          ///< annealed chains of a problem
  std::optional<double> budget = {};  ///< evaluations of a problem, all told: sets chains, steps
  std::optional<double> target_error = {};  ///< nats: as many chains as bring error and bias below
  std::optional<double> mean_error = {};  ///< nats: of the mean over all problems, chains and bias
  std::optional<double> error = {};       ///< nats: of the mean over replicates of one density
  double max_evaluations = 1e5;  ///< of a problem, where target_error, mean_error, error stop
  int64_t repeats = 1;           ///< independent ones, under the same plan
  uint64_t seed = 0;             ///< decides every random number
  std::vector<std::string> expectations = {};  ///< of ExpectationRegistry: means under the target
  bool keep_particles = false;                 ///< in results, with their weights
  // Annealing.
  std::string schedule = "linear";               ///< of ScheduleRegistry
  int64_t steps = 96;                            ///< transitions of a heuristic schedule
  std::string path = "geometric";                ///< of PathRegistry
  std::string kernel = "ghmc:0.8";               ///< of TransitionRegistry
  int64_t num_leapfrog = 1;                      ///< leapfrog steps of a transition
  std::optional<double> step_size = {};          ///< absent: a pilot tunes one for each temperature
  std::string resampling = {};                   ///< of ResamplingRegistry; empty: AIS
  std::optional<double> target_acceptance = {};  ///< of the tuning; absent: the kernel's own
  std::string force_dtype = "auto";  ///< "float32" (as values), "bfloat16", "auto": choose_forces
  // Pilots.
  bool plan_per_problem = false;             ///< else one plan for all
  std::optional<int64_t> pilot_chains = {};  ///< of a problem; absent: default_pilot_chains
  int64_t pilot_problems = 16;               ///< the first so many tune a shared plan
  double min_step = 0.0;                     ///< least step of beta, adaptive schedules
  double max_step = 0.125;                   ///< greatest step of beta, adaptive schedules
  int64_t max_steps = 8192;                  ///< more transitions than this are an error
  double tolerance = 1e-3;                   ///< constant rate: variance at which it has arrived
  bool weighted = false;                     ///< adaptive schedules: weighted statistics
  bool weighted_ratio = false;               ///< constant rate: a weighted mass ratio
  std::optional<int64_t> interpolate = {};   ///< stretch the tuned plan to so many transitions
  bool witness =
      false;  ///< of a density whose base is chosen: a second opinion, by the base mixture
  // Units of work.
  int64_t chunk = 64;  ///< problems estimated together; results depend on it
};

/// Evaluations that an estimate may take at most: years of any machine.
constexpr double kMostEvaluations = 1e15;

/// Throws Error kArgument, naming the option, for values out of range or at odds with each other.
/// Names are checked where they are made (see Estimator).
void check(const EstimateOptions& options);

/// What schedules are told, for a heuristic of `steps` transitions.
ScheduleOptions schedule_options(const EstimateOptions& options, int64_t steps);

/// As many as `chains`, within bounds; at least 16 where particles decide the schedule.
int64_t default_pilot_chains(int64_t chains, bool is_adaptive);

/// What pilots are told, of the schedule that `options` name as `rule`.
PilotOptions pilot_options(const EstimateOptions& options, const ScheduleRule& rule,
                           const Resampling* resampling);

}  // namespace crais
