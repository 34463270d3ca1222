#include "programs/reproduce/variant.h"

#include <cmath>

#include "cli/program.h"
#include "core/spec.h"
#include "estimates/estimate.h"
#include "evaluation/summary.h"
#include "io/json.h"
#include "util/error.h"
#include "util/format.h"

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
  rows.reserve(cells.size());
  for (const auto& cell : cells) {
    rows.push_back(at::tensor(doubles(cell.at(column)), at::kDouble));
    if (rows.back().numel() != static_cast<int64_t>(cells.front().at("log_normalizer").size()))
      throw data_error("a cell has another number of values in '" + column + "'");
  }
  return at::stack(rows);
}

double mean_of(const std::vector<json>& cells, const std::string& key) {
  double sum = 0;
  for (const auto& cell : cells) sum += cell.at(key).get<double>();
  return sum / static_cast<double>(cells.size());
}

/// Adds the average number of transitions of the plans, and the temperatures of the first plan.
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

/// The cell of a run's first method.
json cell_of(const RunResults& results) {
  const MethodTable table = tables(results).front();
  const MethodSummary summary = summarise_method(table, results);
  json cell;
  for (const auto& [name, repeats] : table.columns)
    for (const double value : repeats.front()) cell[name].push_back(json_number(value));
  cell["flags"] = table.flags.front();
  cell["base"] = summary.base_evaluations;
  cell["tuning"] = summary.tuning_evaluations;
  cell["estimating"] = summary.evaluations;
  if (const auto learned = results.state.learned.find(table.method);
      learned != results.state.learned.end())
    cell["training_seconds"] = learned->second.seconds;
  std::vector<Plan> plans;
  if (results.state.plan) plans.push_back(*results.state.plan);
  for (const auto& [chunk, result] : results.chunks)
    if (result.plan) plans.push_back(*result.plan);
  add_plans(plans, cell);
  return cell;
}

}  // namespace

VariantResult result_of(const std::vector<json>& cells) {
  VariantResult result;
  for (const json& cell : cells)
    if (cell.contains("failed")) {
      result.failed = cell.at("failed").get<std::string>();
      result.unfinished = cell.value("unfinished", false);
    }
  if (!result.failed.empty()) return result;
  result.value = matrix_of(cells, "log_normalizer");
  result.std_error = matrix_of(cells, "std_error");
  result.bias = matrix_of(cells, "bias");
  if (cells.front().contains("upper")) {
    result.upper = matrix_of(cells, "upper");
    result.upper_std_error = matrix_of(cells, "upper_std_error");
  }
  result.flags = matrix_of(cells, "flags");
  result.ess = matrix_of(cells, "ess");
  if (cells.front().contains("accept_prob"))
    result.accept_prob = matrix_of(cells, "accept_prob").mean().item<double>();
  result.base = mean_of(cells, "base");
  result.tuning = mean_of(cells, "tuning");
  result.estimating = mean_of(cells, "estimating");
  if (cells.front().contains("training_seconds"))
    result.training_seconds = mean_of(cells, "training_seconds");
  result.transitions = mean_of(cells, "transitions");
  for (const json& cell : cells)
    result.traces.push_back({doubles(cell.at("betas")), doubles(cell.at("divergence"))});
  const json& first = cells.front();
  if (first.contains("x")) {
    result.x = doubles(first.at("x"));
    result.y = doubles(first.at("y"));
  }
  if (first.contains("masses")) {
    std::vector<at::Tensor> runs;
    for (const json& run : first.at("masses"))
      runs.push_back(at::tensor(doubles(run), at::kDouble));
    result.masses = at::stack(runs);
  }
  return result;
}

std::string VariantResult::reason() const {
  const std::string words = failed.substr(0, failed.find_first_of("(;:"));
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

double VariantResult::start_divergence() const {
  return traces.empty() || traces[0].divergence.empty() ? NAN : traces[0].divergence[0];
}

std::vector<std::string> arguments_of(const std::string& operand, const std::string& flags,
                                      uint64_t seed) {
  std::vector<std::string> arguments = {operand};
  for (const auto& word : split(flags, ' '))
    if (!word.empty()) arguments.push_back(word);
  arguments.insert(arguments.end(), {"--seed", std::to_string(seed)});
  return arguments;
}

json estimate_cell(const EstimateOptions& options, const ProblemSource& problems,
                   const std::function<void(const RunResults&, json&)>& add) {
  try {
    const RunResults results = run_problems(problems, Estimator(options));
    json cell = cell_of(results);
    if (add) add(results, cell);
    return cell;
  } catch (const ScheduleError& error) {
    return {{"failed", with_flags("reproduce", error.what())},
            {"unfinished", error.reason() == ScheduleError::Reason::kUnfinished}};
  } catch (const PlanError& error) {
    return {{"failed", with_flags("reproduce", error.what())}};
  }
}

std::string pilot_flags(const std::string& flags, int64_t steps) {
  std::string kept;
  int64_t chains = EstimateOptions().chains;
  const std::vector<std::string> words = split(flags, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--chains")
      chains = parse_integer(words.at(++i), "--chains");
    else if (!words[i].empty())
      kept += words[i] + " ";
  }
  if (kept.find("--pilot-chains") == std::string::npos)
    kept += "--pilot-chains " + std::to_string(default_pilot_chains(chains, true)) + " ";
  return kept + "--chains 1 --max-steps " + std::to_string(2 * steps);
}

}  // namespace crais
