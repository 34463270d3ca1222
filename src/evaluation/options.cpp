#include "evaluation/options.h"

#include <algorithm>
#include <string>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kMostPilotChains = 256;  // by default: more find no better plan
constexpr int64_t kLeastThatDecide = 16;   // by default: a variance over fewer is no guide
constexpr double kMostEvaluations = 1e15;  // an estimate: years of any machine

void require(bool holds, const char* rule) {
  if (!holds) throw argument_error(rule);
}

void require_count(int64_t count, const char* option, int64_t least = 1) {
  if (count < least || count > kMostCount)
    throw argument_error(std::string(option) + " must lie in " + std::to_string(least) + ".." +
                         with_commas(kMostCount) + ", not " + std::to_string(count));
}

}  // namespace

void check(const EstimateOptions& o) {
  require(!o.methods.empty(), "`methods` must name at least one method");
  for (const auto& method : o.methods)
    if (std::count(o.methods.begin(), o.methods.end(), method) > 1)
      throw argument_error("`methods` " + method + " is given twice; use `repeats`");
  require_count(o.chains, "`chains`");
  require(!o.budget || (*o.budget > 0 && *o.budget <= kMostEvaluations),
          "`budget` must be above 0 and at most 1e15 evaluations");
  require(!o.target_error || *o.target_error > 0, "`target_error` must be above 0");
  require(!o.mean_error || *o.mean_error > 0, "`mean_error` must be above 0");
  require((o.budget ? 1 : 0) + (o.target_error ? 1 : 0) + (o.mean_error ? 1 : 0) <= 1,
          "`budget`, `target_error` and `mean_error` exclude each other");
  require(!o.budget || !o.plan_per_problem,
          "`budget` chooses one plan for all problems; leave out `plan_per_problem`");
  for (const auto& name : o.expectations)
    if (std::count(o.expectations.begin(), o.expectations.end(), name) > 1)
      throw argument_error("`expectations` " + name + " is given twice");
  require((!o.target_error && !o.mean_error) || (o.expectations.empty() && !o.keep_particles),
          "`target_error` and `mean_error` give problems different numbers of chains, and neither "
          "`expectations` nor `keep_particles` go with them; ask for more `chains`");
  require(!o.mean_error || !o.plan_per_problem,
          "`mean_error` chooses chains under one plan for all problems; leave out "
          "`plan_per_problem`");
  require(!o.mean_error || o.resampling.empty(),
          "`mean_error` is for chains that know nothing of each other; leave out `resampling`");
  require(o.max_evaluations > 0 && o.max_evaluations <= kMostEvaluations,
          "`max_evaluations` must be above 0 and at most 1e15");
  require_count(o.repeats, "`repeats`");
  require_count(o.steps, "`steps`");
  require_count(o.num_leapfrog, "`num_leapfrog`");
  require(!o.step_size || *o.step_size > 0, "`step_size` must be above 0, or left to a pilot");
  require(!o.target_acceptance || (*o.target_acceptance > 0 && *o.target_acceptance < 1),
          "`target_acceptance` must lie between 0 and 1");
  require(o.force_dtype == "auto" || o.force_dtype == "float32" || o.force_dtype == "bfloat16",
          "`force_dtype` must be auto, float32 or bfloat16");
  if (o.pilot_chains) require_count(*o.pilot_chains, "`pilot_chains`", 2);
  require_count(o.pilot_problems, "`pilot_problems`");
  require(o.min_step >= 0 && o.min_step <= o.max_step,
          "`min_step` must not be larger than `max_step`, nor below 0");
  require(o.max_step > 0 && o.max_step <= 1, "`max_step` must lie between 0 and 1");
  require_count(o.max_steps, "`max_steps`");
  require(o.tolerance > 0, "`tolerance` must be above 0");
  if (o.interpolate) require_count(*o.interpolate, "`interpolate`");
  require(static_cast<double>(o.chains) * static_cast<double>(o.steps) *
                  static_cast<double>(o.num_leapfrog) <=
              kMostEvaluations,
          "`chains` times `steps` times `num_leapfrog` are more evaluations than any machine "
          "computes");
  require_count(o.chunk, "`chunk`");
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
  PilotOptions pilot;
  pilot.num_particles =
      options.pilot_chains.value_or(default_pilot_chains(options.chains, rule.is_adaptive()));
  pilot.max_steps = options.max_steps;
  pilot.shared = !options.plan_per_problem;
  pilot.step_size = options.step_size;
  pilot.target_acceptance = options.target_acceptance.value_or(0.0);
  pilot.interpolate = options.interpolate.value_or(0);
  pilot.resampling = resampling;
  return pilot;
}

}  // namespace crais
