/// @file
/// The options of an estimate and all their defaults. Programs take the defaults from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.h"
#include "samplers/plan.h"

namespace crais {

/// The options of an estimate. option_table.cpp describes each. Names are specifications of the
/// registries: "iwae:5000", "constant-rate:32,max-step=0.1".
///
///     crais::EstimateOptions options{.chains = 32, .seed = 1, .schedule = "cess:0.9"};
struct EstimateOptions {
  std::vector<std::string> methods = {"ais"};  ///< in MethodRegistry
  std::string base = "auto";                   ///< in BaseRegistry, or "auto": see choose_base
  int64_t chains = 8;                          ///< annealed chains of each problem
  std::optional<double> budget = {};  ///< total evaluations of a problem: sets chains and steps
  std::optional<double> error = {};   ///< nats: of replicates' mean, or of the control's gap
  double max_evaluations = 1e5;       ///< of a problem, where error stops
  int64_t repeats = 1;                ///< independent ones, under the same plan
  uint64_t seed = 0;                  ///< decides every random number
  std::vector<std::string> expectations = {};  ///< of ExpectationRegistry: means under the target
  bool keep_particles = false;                 ///< in results, with their weights
  // Annealing.
  std::string schedule = "linear";               ///< in ScheduleRegistry
  int64_t steps = 96;                            ///< transitions of a heuristic schedule
  std::string path = "geometric";                ///< in PathRegistry
  std::string kernel = "ghmc:0.8";               ///< in TransitionRegistry
  int64_t num_leapfrog = 1;                      ///< leapfrog steps of a transition
  std::optional<double> step_size = {};          ///< absent: a pilot tunes one for each temperature
  std::string resampling = {};                   ///< in ResamplingRegistry; empty: AIS
  std::optional<double> target_acceptance = {};  ///< of the tuning; absent: the kernel's
  std::string force_dtype = "auto";  ///< "float32" (as values), "bfloat16", "auto": choose_forces
  // Pilots.
  bool plan_per_problem = false;             ///< else one plan for all
  std::optional<int64_t> pilot_chains = {};  ///< of each problem; absent: default_pilot_chains
  int64_t pilot_problems = 16;               ///< the first problems, which tune a shared plan
  double min_step = 0.0;                     ///< least step of beta, adaptive schedules
  double max_step = 0.125;                   ///< greatest step of beta, adaptive schedules
  int64_t max_steps = 8192;                  ///< more transitions than this are an error
  double tolerance = 1e-3;                   ///< constant rate: variance below which it has arrived
  bool weighted = false;                     ///< adaptive schedules: weighted statistics
  bool weighted_ratio = false;               ///< constant rate: a weighted mass ratio
  std::optional<int64_t> interpolate = {};   ///< stretch the tuned plan to this many transitions
  bool witness = false;  ///< for a density with a given base: a second opinion, by the base mixture
  // Units of work.
  int64_t chunk = 64;  ///< problems estimated together; results depend on it
};

/// The most evaluations that an estimate may take: years on any machine.
constexpr double kMostEvaluations = 1e15;

/// Throws Error kArgument that names the option for values out of range or in conflict. Names are
/// checked later, when their objects are made (see Estimator).
void check(const EstimateOptions& options);

/// The options of schedules, for a heuristic of `steps` transitions.
ScheduleOptions schedule_options(const EstimateOptions& options, int64_t steps);

/// The default number of pilot chains: `chains` within bounds; at least 16 if particles determine
/// the schedule.
int64_t default_pilot_chains(int64_t chains, bool is_adaptive);

/// The options of pilots for the schedule `rule`, which `options` name.
PilotOptions pilot_options(const EstimateOptions& options, const ScheduleRule& rule,
                           const Resampling* resampling);

}  // namespace crais
