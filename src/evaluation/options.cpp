#include "evaluation/options.h"

#include <algorithm>

#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kMostPilotChains = 256;  // by default: more find no better plan

void require(bool holds, const char* rule) {
  if (!holds) throw argument_error(rule);
}

}  // namespace

void check(const EstimateOptions& o) {
  require(!o.methods.empty(), "`methods` must name at least one method");
  for (const auto& method : o.methods)
    if (std::count(o.methods.begin(), o.methods.end(), method) > 1)
      throw argument_error("`methods` " + method + " is given twice; use `repeats`");
  require(o.chains >= 1, "`chains` must be at least 1");
  require(!o.budget || *o.budget > 0, "`budget` must be above 0");
  require(!o.target_error || *o.target_error > 0, "`target_error` must be above 0");
  require(!o.budget || !o.target_error, "`budget` and `target_error` exclude each other");
  require(!o.budget || !o.plan_per_problem,
          "`budget` chooses one plan for all problems; leave out `plan_per_problem`");
  for (const auto& name : o.expectations)
    if (std::count(o.expectations.begin(), o.expectations.end(), name) > 1)
      throw argument_error("`expectations` " + name + " is given twice");
  require(!o.target_error || (o.expectations.empty() && !o.keep_particles),
          "`target_error` gives problems different numbers of chains, and neither `expectations` "
          "nor `keep_particles` go with it; ask for more `chains`");
  require(o.max_evaluations > 0, "`max_evaluations` must be above 0");
  require(o.repeats >= 1, "`repeats` must be at least 1");
  require(o.steps >= 1, "`steps` must be at least 1");
  require(o.num_leapfrog >= 1, "`num_leapfrog` must be at least 1");
  require(!o.step_size || *o.step_size > 0, "`step_size` must be above 0, or left to a pilot");
  require(!o.target_acceptance || (*o.target_acceptance > 0 && *o.target_acceptance < 1),
          "`target_acceptance` must lie between 0 and 1");
  require(!o.pilot_chains || *o.pilot_chains >= 2, "`pilot_chains` must be at least 2");
  require(o.pilot_problems >= 1, "`pilot_problems` must be at least 1");
  require(o.min_step >= 0 && o.min_step <= o.max_step,
          "`min_step` must not be larger than `max_step`, nor below 0");
  require(o.max_step > 0 && o.max_step <= 1, "`max_step` must lie between 0 and 1");
  require(o.max_steps >= 1, "`max_steps` must be at least 1");
  require(o.tolerance > 0, "`tolerance` must be above 0");
  require(!o.interpolate || *o.interpolate >= 1, "`interpolate` must be at least 1");
  require(o.chunk >= 1, "`chunk` must be at least 1");
}

ScheduleOptions schedule_options(const EstimateOptions& options, int64_t steps) {
  return {steps,
          options.min_step,
          options.max_step,
          options.tolerance,
          options.weighted,
          options.weighted_ratio};
}

PilotOptions pilot_options(const EstimateOptions& options, const Resampling* resampling) {
  PilotOptions pilot;
  pilot.num_particles =
      options.pilot_chains.value_or(std::clamp<int64_t>(options.chains, 2, kMostPilotChains));
  pilot.max_steps = options.max_steps;
  pilot.shared = !options.plan_per_problem;
  pilot.step_size = options.step_size;
  pilot.target_acceptance = options.target_acceptance.value_or(0.0);
  pilot.interpolate = options.interpolate.value_or(0);
  pilot.resampling = resampling;
  return pilot;
}

}  // namespace crais
