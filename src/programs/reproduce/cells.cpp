#include "programs/reproduce/cells.h"

#include <cmath>
#include <map>

#include "cli/program.h"
#include "estimates/estimate.h"
#include "evaluation/result_store.h"
#include "evaluation/summary.h"
#include "io/json.h"
#include "report/progress.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/files.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {

using nlohmann::json;

namespace {

std::string digest_of(const json& result) { return sha256(result.dump()); }

json stored_result(const std::filesystem::path& path, bool accept_other_version) {
  const json cell = read_json(path);
  json result = json_field<json>(cell, "result", path);
  const std::string difference = difference_of_builds(cell.value("computed_by", json()));
  if (!difference.empty() && !accept_other_version)
    throw argument_error(path.string() + ": another build has computed this (" + difference +
                         "); `accept_other_version` takes it as it is, another --out or an empty "
                         "folder computes it anew");
  if (json_field<std::string>(cell, "digest", path) != digest_of(result))
    throw data_error(path.string() + ": is damaged; delete it to have it computed again");
  return result;
}

std::vector<double> doubles(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(value.is_null() ? NAN : value.get<double>());
  return values;
}

/// The rows, which are equally long.
at::Tensor matrix(const std::vector<json>& rows) {
  std::vector<at::Tensor> tensors;
  for (const json& row : rows) {
    tensors.push_back(at::tensor(doubles(row), at::kDouble));
    if (tensors.back().numel() != tensors.front().numel())
      throw data_error("a cell has another number of values than others");
  }
  return at::stack(tensors);
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

std::filesystem::path cell_path(const ExperimentOptions& options, const json& key) {
  const json identity = {{"key", key}, {"device", options.device.is_cpu() ? "cpu" : "cuda"}};
  return options.cells / (sha256(identity.dump()).substr(0, 24) + ".json");
}

std::vector<json> run_tasks(const ExperimentOptions& options, const std::string& label,
                            const std::vector<Task>& tasks) {
  make_output_folder(options.cells);
  std::vector<json> results(tasks.size());
  std::vector<std::filesystem::path> paths;
  std::vector<size_t> missing;
  std::map<std::filesystem::path, size_t> first;  // of the tasks with that path
  for (size_t i = 0; i < tasks.size(); ++i) {
    paths.push_back(cell_path(options, tasks[i].key));
    if (!first.emplace(paths[i], i).second) continue;
    if (std::filesystem::exists(paths[i]))
      results[i] = stored_result(paths[i], options.accept_other_version);
    else
      missing.push_back(i);
  }
  ProgressLine progress(
      {.label = label, .unit = "cells", .enabled = !options.quiet && !missing.empty()});
  progress.begin(static_cast<int64_t>(first.size() - missing.size()),
                 static_cast<int64_t>(first.size()));
  parallel_for(
      static_cast<int64_t>(missing.size()), options.device.is_cpu() ? options.threads : 1,
      [&](int64_t m) {
        const size_t i = missing[static_cast<size_t>(m)];
        results[i] = tasks[i].compute();
        write_file_atomic(paths[i], json{{"key", tasks[i].key},
                                         {"computed_by", computed_by()},
                                         {"digest", digest_of(results[i])},
                                         {"result", results[i]}}
                                        .dump());
        progress.advance();
      },
      interrupted);
  progress.finish();
  throw_if_interrupted("the same command goes on with what is done");
  for (size_t i = 0; i < tasks.size(); ++i) results[i] = results[first.at(paths[i])];
  return results;
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
    std::vector<json> rows;
    for (const json& cell : cells) rows.push_back(cell.at("columns").at(name));
    r.columns[name] = matrix(rows);
  }
  for (const auto& [name, value] : first.at("means").items()) {
    double sum = 0;
    for (const json& cell : cells) sum += cell.at("means").at(name).get<double>();
    r.means[name] = sum / static_cast<double>(cells.size());
  }
  for (const json& cell : cells)
    r.traces.push_back({doubles(cell.at("betas")), doubles(cell.at("divergence"))});
  r.x = doubles(first.value("x", json()));
  r.y = doubles(first.value("y", json()));
  if (first.contains("masses")) r.masses = matrix(first.at("masses").get<std::vector<json>>());
  return r;
}

at::Tensor VariantResult::column(const std::string& name) const {
  const auto found = columns.find(name);
  return found == columns.end() ? at::full({1, 1}, NAN, at::kDouble) : found->second;
}

}  // namespace crais
