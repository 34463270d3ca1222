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
  return result;
}

Cell VariantResult::or_reason(Cell cell) const {
  if (failed.empty()) return cell;
  const std::string words = failed.substr(0, failed.find_first_of("(;:"));
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

double VariantResult::start_divergence() const {
  return traces.empty() || traces[0].divergence.empty() ? NAN : traces[0].divergence[0];
}

std::string flags_of_plans(const std::string& schedule, int64_t steps) {
  const auto rule =
      ScheduleRegistry::instance().make("schedule", schedule, schedule_options({}, steps));
  return "--schedule " + schedule + (rule->is_adaptive() ? " --interpolate " : " --steps ") +
         std::to_string(steps);
}

std::string without_pilot(const std::string& flags) {
  if (flags.find("--step-size") == std::string::npos) return flags;
  std::string kept;
  for (const auto& word : split(flags, ' '))
    if (!word.empty() && word != "--per-problem") kept += (kept.empty() ? "" : " ") + word;
  return kept;
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

std::vector<VariantResult> Subject::run_tasks_of(const std::string& label,
                                                 const std::vector<Variant>& variants,
                                                 int64_t seeds, uint64_t first_seed,
                                                 bool for_plans) const {
  std::vector<Task> tasks;
  for (const Variant& variant : variants)
    for (int64_t s = 0; s < seeds; ++s)
      tasks.push_back(task(variant.flags, first_seed + static_cast<uint64_t>(s), for_plans));
  const std::vector<json> cells = run_tasks(options_, label, tasks);
  std::vector<VariantResult> results;
  for (size_t a = 0; a < variants.size(); ++a) {
    const auto first = cells.begin() + static_cast<int64_t>(a) * seeds;
    results.push_back(result_of({first, first + seeds}));
  }
  return results;
}

std::vector<VariantResult> Subject::run(const std::string& label,
                                        const std::vector<Variant>& variants, int64_t seeds,
                                        uint64_t first_seed) const {
  return run_tasks_of(label, variants, seeds, first_seed, /*for_plans=*/false);
}

MatchedPlans Subject::match(const std::string& flags, int64_t steps, int64_t seeds) const {
  return match_transitions(flags, steps, [&](const std::vector<std::string>& trials) {
    std::vector<Variant> variants;
    for (const auto& trial : trials) variants.push_back({trial, pilot_flags(trial, steps)});
    std::vector<double> counts;
    for (const VariantResult& result :
         run_tasks_of("plans of " + std::to_string(steps), variants, seeds, 0, /*for_plans=*/true))
      counts.push_back(result.unfinished ? INFINITY : result.transitions);
    return counts;
  });
}

}  // namespace crais
