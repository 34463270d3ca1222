#include "evaluation/options_json.h"

#include <nlohmann/json.hpp>

#include "core/rng.h"

namespace crais {
namespace {

using nlohmann::json;

template <typename T>
json optional(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

json to_json(const EstimateOptions& o) {
  json object = {{"methods", o.methods},
                 {"base", o.base},
                 {"chains", o.chains},
                 {"budget", optional(o.budget)},
                 {"target_error", optional(o.target_error)},
                 {"mean_error", optional(o.mean_error)},
                 {"max_evaluations", o.max_evaluations},
                 {"repeats", o.repeats},
                 {"seed", o.seed},
                 {"stream", kStreamVersion},
                 {"schedule", o.schedule},
                 {"steps", o.steps},
                 {"path", o.path},
                 {"kernel", o.kernel},
                 {"num_leapfrog", o.num_leapfrog},
                 {"step_size", optional(o.step_size)},
                 {"resampling", o.resampling},
                 {"target_acceptance", optional(o.target_acceptance)},
                 {"force_dtype", o.force_dtype},
                 {"plan_per_problem", o.plan_per_problem},
                 {"pilot_chains", optional(o.pilot_chains)},
                 {"pilot_problems", o.pilot_problems},
                 {"min_step", o.min_step},
                 {"max_step", o.max_step},
                 {"max_steps", o.max_steps},
                 {"tolerance", o.tolerance},
                 {"weighted", o.weighted},
                 {"weighted_ratio", o.weighted_ratio},
                 {"interpolate", optional(o.interpolate)},
                 {"chunk", o.chunk}};
  if (o.witness) object["witness"] = true;
  if (!o.expectations.empty()) object["expectations"] = o.expectations;
  return object;
}

}  // namespace crais
