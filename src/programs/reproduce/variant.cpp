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

/// Adds the average number of transitions of the plans, and the temperatures of the first plan.
void add_plans(const std::vector<Plan>& plans, json& cell) {
  std::vector<double> counts;
  for (const Plan& plan : plans) add_transitions(plan, counts);
  double sum = 0;
  for (const double count : counts) sum += count;
  cell["means"]["transitions"] = counts.empty() ? 0.0 : sum / static_cast<double>(counts.size());
  cell["betas"] = cell["divergence"] = json::array();
  if (plans.empty()) return;
  const at::Tensor betas = plans.front().betas.select(1, 0);
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
  const auto learned = results.state.learned.find(table.method);
  const bool has_learned = learned != results.state.learned.end();
  json cell;
  for (const auto& [name, repeats] : table.columns)
    for (const double value : repeats.front()) cell["columns"][name].push_back(json_number(value));
  cell["columns"]["flags"] = table.flags.front();
  cell["means"] = {{"base", summary.base_evaluations},
                   {"tuning", summary.tuning_evaluations},
                   {"estimating", summary.evaluations},
                   {"training_seconds", has_learned ? learned->second.seconds : 0.0}};
  std::vector<Plan> plans;
  if (results.state.plan) plans.push_back(*results.state.plan);
  for (const auto& [chunk, result] : results.chunks)
    if (result.plan) plans.push_back(*result.plan);
  add_plans(plans, cell);
  return cell;
}

}  // namespace

VariantResult result_of(const std::vector<json>& cells) {
  VariantResult r;
  for (const json& cell : cells)
    if (cell.contains("failed")) {
      r.failed = cell.at("failed").get<std::string>();
      r.unfinished = cell.value("unfinished", false);
    }
  if (!r.failed.empty()) return r;
  const json& first = cells.front();
  for (const auto& [name, values] : first.at("columns").items()) {
    std::vector<at::Tensor> rows(cells.size());
    for (size_t i = 0; i < cells.size(); ++i)
      rows[i] = at::tensor(doubles(cells[i].at("columns").at(name)), at::kDouble);
    for (const at::Tensor& row : rows)
      if (row.numel() != static_cast<int64_t>(first["columns"].at("log_normalizer").size()))
        throw data_error("a cell has another number of values in '" + name + "'");
    r.columns[name] = at::stack(rows);
  }
  for (const auto& [name, value] : first.at("means").items()) {
    double sum = 0;
    for (const json& cell : cells) sum += cell.at("means").at(name).get<double>();
    r.means[name] = sum / static_cast<double>(cells.size());
  }
  for (const json& cell : cells)
    r.traces.push_back({doubles(cell.at("betas")), doubles(cell.at("divergence"))});
  if (first.contains("x")) {
    r.x = doubles(first.at("x"));
    r.y = doubles(first.at("y"));
  }
  if (first.contains("masses")) {
    std::vector<at::Tensor> runs;
    for (const json& run : first.at("masses"))
      runs.push_back(at::tensor(doubles(run), at::kDouble));
    r.masses = at::stack(runs);
  }
  return r;
}

at::Tensor VariantResult::column(const std::string& name) const {
  const auto found = columns.find(name);
  return found == columns.end() ? at::full({1, 1}, NAN, at::kDouble) : found->second;
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
