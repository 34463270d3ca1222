#include "programs/reproduce/experiments/particle_cloud.h"

#include <algorithm>
#include <cmath>

#include "cli/program.h"
#include "core/plan_error.h"
#include "core/rng.h"
#include "io/json.h"
#include "programs/reproduce/variant.h"
#include "samplers/resampling.h"

namespace crais {
namespace {

using nlohmann::json;

std::vector<double> numbers_of(const json& list) {
  std::vector<double> values;
  values.reserve(list.size());
  for (const json& value : list) values.push_back(value.is_null() ? NAN : value.get<double>());
  return values;
}

/// Some rows of [K,D], resampled systematically by their weights [K]: equal weights, no rows that
/// matter left out.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed) {
  at::Generator rng = make_generator(derive_seed(seed, Purpose::kResample));
  const at::Tensor index = ResamplingRegistry::instance()
                               .make("resampling", "systematic")
                               ->ancestors(log_w.unsqueeze(0), rng)
                               .squeeze(0);
  const at::Tensor some =
      at::linspace(0, static_cast<double>(index.size(0) - 1), count, at::kDouble).round();
  return z.index_select(0, index.index_select(0, some.to(at::kLong)));
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
  const at::Tensor some = thinned(first.particles->z[0].to(at::kDouble), first.particles->log_w[0],
                                  kDrawnParticles, options.seed);
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

Contours contours_of(const Target& target, const Window& w) {
  constexpr int64_t kGrid = 121;
  const at::Tensor x = at::linspace(w.left, w.right, kGrid, at::kDouble);
  const at::Tensor y = at::linspace(w.bottom, w.top, kGrid, at::kDouble);
  const at::Tensor z =
      at::stack({x.unsqueeze(0).expand({kGrid, kGrid}), y.unsqueeze(1).expand({kGrid, kGrid})}, -1)
          .reshape({1, kGrid * kGrid, 2});
  const at::Tensor log_density =
      target.slice(0, 1)->log_density(z.to(target.options())).to(at::kCPU, at::kDouble).flatten();
  const at::Tensor density = (log_density - log_density.max()).exp();
  const at::Tensor sorted = std::get<0>(density.sort(0, /*descending=*/true));
  const at::Tensor held = sorted.cumsum(0) / sorted.sum();
  Contours contours{static_cast<size_t>(kGrid), to_column(density), {}};
  for (const double share : {0.95, 0.5}) {
    const int64_t place = (held < share).sum().item<int64_t>();
    contours.levels.push_back(sorted[std::min(place, kGrid * kGrid - 1)].item<double>());
  }
  return contours;
}

}  // namespace crais
