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

json json_numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

/// The cell of a run's first method.
json cell_of(const RunResults& results) {
  const MethodTable table = tables(results).front();
  const MethodSummary summary = summarise_method(table, results);
  const auto learned = results.state.learned.find(table.method);
  const bool has_learned = learned != results.state.learned.end();
  json cell;
  for (const auto& [name, repeats] : table.columns) cell[name] = json_numbers(repeats.front());
  cell["flags"] = table.flags.front();
  cell["base"] = json_numbers({summary.base_evaluations});
  cell["tuning"] = json_numbers({summary.tuning_evaluations});
  cell["estimating"] = json_numbers({summary.evaluations});
  cell["training_seconds"] = json_numbers({has_learned ? learned->second.seconds : 0.0});
  std::vector<Plan> plans;
  if (results.state.plan) plans.push_back(*results.state.plan);
  for (const auto& [chunk, result] : results.chunks)
    if (result.plan) plans.push_back(*result.plan);
  std::vector<double> counts;
  for (const Plan& plan : plans) add_transitions(plan, counts);
  double sum = 0;
  for (const double count : counts) sum += count;
  cell["transitions"] =
      json_numbers({counts.empty() ? 0.0 : sum / static_cast<double>(counts.size())});
  if (plans.empty()) return cell;
  const auto of_first = [&](const at::Tensor& all) {  // problem
    const auto places = static_cast<int64_t>(counts.front()) + 1;
    return json_numbers(to_column(all.defined() ? all.select(1, 0).slice(0, 0, places) : all));
  };
  cell["betas"] = of_first(plans.front().betas);
  cell["divergence"] = of_first(plans.front().divergence);
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
  for (const json& cell : cells)
    for (const auto& [name, list] : cell.items()) {
      std::vector<double> values;
      for (const json& value : list) values.push_back(value.is_null() ? NAN : value.get<double>());
      r.values[name].push_back(at::tensor(values, at::kDouble));
    }
  return r;
}

at::Tensor VariantResult::column(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return at::full({1, 1}, NAN, at::kDouble);
  for (const at::Tensor& row : found->second)
    if (row.numel() != first("log_normalizer").numel())
      throw data_error("a cell has another number of values in '" + name + "'");
  return at::stack(found->second);
}

double VariantResult::mean(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return NAN;
  double sum = 0;
  for (const at::Tensor& value : found->second) sum += value.item<double>();
  return sum / static_cast<double>(found->second.size());
}

at::Tensor VariantResult::first(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? at::empty({0}, at::kDouble) : found->second.front();
}

}  // namespace crais
