#include "evaluation/options.h"

#include <algorithm>

#include "evaluation/chunk_memory.h"
#include "evaluation/option_table.h"
#include "util/error.h"
#include "util/format.h"
#include "util/memory.h"

namespace crais {
namespace {

constexpr int64_t kMostPilotChains = 256;  // by default; more do not find a better plan
constexpr int64_t kLeastThatDecide = 16;   // by default; a variance of fewer is too noisy

void require(bool holds, const char* rule) {
  if (!holds) throw argument_error(rule);
}

}  // namespace

void check(const EstimateOptions& o) {
  for (const OptionRow& row : option_table()) check_row(row, o);
  require(!o.methods.empty(), "`methods` must name at least one method");
  require(!o.budget || !o.error, "`budget` and `error` exclude each other");
  require(!o.budget || !o.plan_per_problem,
          "`budget` chooses one plan for all problems; leave out `plan_per_problem`");
  require(o.min_step <= o.max_step, "`min_step` must not be larger than `max_step`");
  require(static_cast<double>(o.chains) * static_cast<double>(o.steps) *
                  static_cast<double>(o.num_leapfrog) <=
              kMostEvaluations,
          "`chains` times `steps` times `num_leapfrog` are more evaluations than any machine can "
          "compute");
  require_temperatures(o.steps, 1);
  constexpr double kRow = 256;  // bytes: the numbers of an estimate, and their text
  require_memory(kRow * static_cast<double>(o.repeats), "`repeats`: " + with_commas(o.repeats));
}

ScheduleOptions schedule_options(const EstimateOptions& options, int64_t steps) {
  return {.steps = steps,
          .min_step = options.min_step,
          .max_step = options.max_step,
          .tolerance = options.tolerance,
          .weighted = options.weighted,
          .weighted_ratio = options.weighted_ratio};
}

int64_t default_pilot_chains(int64_t chains, bool is_adaptive) {
  return std::clamp<int64_t>(chains, is_adaptive ? kLeastThatDecide : 2, kMostPilotChains);
}

PilotOptions pilot_options(const EstimateOptions& options, const ScheduleRule& rule,
                           const Resampling* resampling) {
  return {.num_particles = options.pilot_chains.value_or(
              default_pilot_chains(options.chains, rule.is_adaptive())),
          .max_steps = options.max_steps,
          .shared = !options.plan_per_problem,
          .step_size = options.step_size,
          .target_acceptance = options.target_acceptance.value_or(0.0),
          .interpolate = options.interpolate.value_or(0),
          .resampling = resampling};
}

}  // namespace crais
