#include "programs/reproduce/experiments/particle_cloud.h"

#include <cmath>

#include "cli/program.h"
#include "core/plan_error.h"
#include "io/json.h"
#include "programs/plane.h"
#include "programs/reproduce/variant.h"

namespace crais {
namespace {

using nlohmann::json;

std::vector<double> numbers_of(const json& list) {
  std::vector<double> values;
  values.reserve(list.size());
  for (const json& value : list) values.push_back(value.is_null() ? NAN : value.get<double>());
  return values;
}

}  // namespace

Cloud::Cloud(const json& cell) {
  if (cell.contains("failed")) {
    failed = cell.at("failed").get<std::string>();
    return;
  }
  x = numbers_of(cell.at("x"));
  y = numbers_of(cell.at("y"));
  ess = cell.at("ess").get<double>();
  transitions = cell.at("transitions").get<double>();
  estimating = cell.at("estimating").get<double>();
  tuning = cell.at("tuning").get<double>();
  log_normalizer = numbers_of(cell.at("log_normalizer"));
  if (!cell.contains("masses")) return;
  masses = numbers_of(cell.at("masses"));
  mass_errors = numbers_of(cell.at("mass_errors"));
  for (const json& run : cell.at("run_masses")) run_masses.push_back(numbers_of(run));
}

json cloud_cell(const EstimateOptions& options, const ProblemSource& problems) {
  RunResults results;
  try {
    results = run_problems(problems, Estimator(options));
  } catch (const PlanError& error) {
    return {{"failed", with_flags("reproduce", error.what())}};
  }
  const json cell = cell_of(results);
  const ChunkRun& first = results.chunks.begin()->second.runs.front();
  const at::Tensor some =
      thinned(first.particles->z[0], first.particles->log_w[0], kDrawnParticles, options.seed);
  json kept = {{"x", to_column(some.select(1, 0))}, {"y", to_column(some.select(1, 1))}};
  for (const char* key : {"transitions", "estimating", "tuning", "log_normalizer"})
    kept[key] = cell.at(key);
  const at::Tensor fractions = at::tensor(numbers_of(cell.at("ess")), at::kDouble);
  kept["ess"] = json_number(fractions.mean().item<double>());
  const auto modes = first.expectations.find("modes");
  if (modes == first.expectations.end()) return kept;
  const ExpectationEstimate all = pooled({modes->second});
  kept["masses"] = to_column(all.mean);
  for (const double error : to_column(all.std_error))
    kept["mass_errors"].push_back(json_number(error));
  for (int64_t r = 0; r < modes->second.mean.size(0); ++r)
    kept["run_masses"].push_back(to_column(modes->second.mean[r]));
  return kept;
}

}  // namespace crais
