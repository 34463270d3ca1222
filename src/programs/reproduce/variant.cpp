#include "programs/reproduce/variant.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/spec.h"
#include "evaluation/estimator.h"
#include "evaluation/summary.h"
#include "io/json.h"
#include "util/error.h"

namespace crais {
namespace {

using nlohmann::json;

std::vector<double> doubles(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(value.is_null() ? NAN : value.get<double>());
  return values;
}

at::Tensor matrix_of(const std::vector<json>& cells, const std::string& column) {
  std::vector<at::Tensor> rows;
  for (const auto& cell : cells) rows.push_back(at::tensor(doubles(cell.at(column)), at::kDouble));
  return at::stack(rows);
}

double mean_of(const std::vector<json>& cells, const std::string& key) {
  double sum = 0;
  for (const auto& cell : cells) sum += cell.at(key).get<double>();
  return sum / static_cast<double>(cells.size());
}

/// What seeds of one arm have found.
ArmResult result_of(const std::vector<json>& cells) {
  ArmResult result;
  for (const json& cell : cells)
    if (cell.contains("failed")) result.failed = cell.at("failed").get<std::string>();
  if (!result.failed.empty()) return result;
  result.value = matrix_of(cells, "log_normalizer");
  result.std_error = matrix_of(cells, "std_error");
  if (cells.front().contains("upper")) result.upper = matrix_of(cells, "upper");
  result.flags = matrix_of(cells, "flags");
  result.ess = matrix_of(cells, "ess");
  result.base = mean_of(cells, "base");
  result.tuning = mean_of(cells, "tuning");
  result.estimating = mean_of(cells, "estimating");
  if (cells.front().contains("training_seconds"))
    result.training_seconds = mean_of(cells, "training_seconds");
  result.transitions = mean_of(cells, "transitions");
  for (const json& cell : cells)
    result.traces.push_back({doubles(cell.at("betas")), doubles(cell.at("divergence"))});
  return result;
}

/// How many transitions the plans have, on average, and the temperatures of the first.
void add_plans(const std::vector<Plan>& plans, json& cell) {
  std::vector<double> counts;
  for (const Plan& plan : plans) add_transitions(plan, counts);
  double sum = 0;
  for (const double count : counts) sum += count;
  cell["transitions"] = counts.empty() ? 0.0 : sum / static_cast<double>(counts.size());
  cell["betas"] = cell["divergence"] = json::array();
  if (plans.empty()) return;
  const at::Tensor betas = plans.front().betas.select(1, 0).contiguous();
  for (int64_t i = 0; i <= static_cast<int64_t>(counts.front()); ++i) {
    cell["betas"].push_back(betas[i].item<double>());
    if (plans.front().divergence.defined())
      cell["divergence"].push_back(json_number(plans.front().divergence[i][0].item<double>()));
  }
}

json computed(const EstimatorSettings& settings, int64_t count, int64_t chunk,
              const std::function<std::unique_ptr<Target>(int64_t, int64_t)>& part) {
  Estimator estimator(settings);
  const auto pilots = part(0, std::min(settings.pilot_problems, count));
  const Shared& shared = estimator.tune_shared(*pilots, count);
  const auto start = std::chrono::steady_clock::now();
  estimator.prepare(*pilots);
  const std::chrono::duration<double> training = std::chrono::steady_clock::now() - start;
  Cost base, tuning = shared.tuning, estimating;
  for (const auto& [method, cost] : shared.prepared) tuning += cost;
  std::map<std::string, std::vector<json>> columns;
  std::vector<Plan> plans;
  if (shared.plan) plans.push_back(*shared.plan);
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const ChunkResult result =
        estimator.estimate(begin / chunk, *part(begin, std::min(begin + chunk, count)));
    base += result.base;
    tuning += result.tuning;
    if (result.plan) plans.push_back(*result.plan);
    const ChunkRun& run = result.runs.front();
    estimating += run.cost;
    for (const auto& [name, column] : ChunkRun::columns())
      for (const double value : run.*column) columns[name].push_back(json_number(value));
  }
  json cell = columns;
  const auto each = [&](const Cost& cost) {
    return static_cast<double>(cost.densities) / static_cast<double>(count);
  };
  cell["base"] = each(base);
  cell["tuning"] = each(tuning);
  cell["estimating"] = each(estimating);
  if (!shared.prepared.empty()) cell["training_seconds"] = training.count();
  add_plans(plans, cell);
  return cell;
}

}  // namespace

std::string ArmResult::reason() const {
  const std::string words = failed.substr(0, failed.find_first_of("(;:"));
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

std::vector<std::string> arguments_of(const std::string& operand, const std::string& flags,
                                      uint64_t seed) {
  std::vector<std::string> arguments = {operand};
  for (const auto& word : split(flags, ' '))
    if (!word.empty()) arguments.push_back(word);
  arguments.insert(arguments.end(), {"--seed", std::to_string(seed)});
  return arguments;
}

json estimate_cell(const EstimatorSettings& settings, int64_t count, int64_t chunk,
                   const std::function<std::unique_ptr<Target>(int64_t, int64_t)>& part) {
  try {
    return computed(settings, count, chunk, part);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    return {{"failed", error.what()}};
  }
}

std::vector<ArmResult> run_arms(
    const ExperimentOptions& options, const std::string& label, const std::vector<Arm>& arms,
    int64_t seeds, uint64_t first_seed,
    const std::function<Task(const std::string& flags, uint64_t seed)>& make_task) {
  std::vector<Task> tasks;
  for (const Arm& arm : arms)
    for (int64_t s = 0; s < seeds; ++s)
      tasks.push_back(make_task(arm.flags, first_seed + static_cast<uint64_t>(s)));
  const std::vector<json> cells = run_tasks(options, label, tasks);
  std::vector<ArmResult> results;
  for (size_t a = 0; a < arms.size(); ++a) {
    const auto first = cells.begin() + static_cast<int64_t>(a) * seeds;
    results.push_back(result_of({first, first + seeds}));
  }
  return results;
}

Series along_plan(const std::string& name, const std::vector<double>& values) {
  constexpr size_t kPoints = 400;
  Series series{name, {}, {}, {}};
  const size_t stride = values.size() / kPoints + 1;
  const size_t last = values.size() - 1;
  for (size_t i = 0; i < last + stride; i += stride) {
    const size_t place = std::min(i, last);
    series.x.push_back(static_cast<double>(place) / static_cast<double>(last));
    series.y.push_back(values[place]);
  }
  return series;
}

Spread::Spread(const at::Tensor& values)
    : mean(values.mean().item<double>()),
      std_error(values.std(0, true).item<double>() /
                std::sqrt(static_cast<double>(values.size(0)))) {}

}  // namespace crais
