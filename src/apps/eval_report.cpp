#include "apps/eval_report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <utility>

#include "core/files.h"
#include "core/format.h"
#include "data/csv.h"
#include "report/json.h"
#include "report/table.h"

namespace crais {
namespace {

using nlohmann::json;

/// Everything known of one method: rows are repeats, columns images.
struct MethodTable {
  std::vector<std::vector<double>> log_likelihood, std_error, ess;
  std::vector<double> accept_prob;
  Cost cost;
  int64_t num_nonfinite = 0;
  double seconds = 0.0;

  void add(const ChunkRun& run) {
    const auto repeat = static_cast<size_t>(run.repeat);
    for (auto [table, values] :
         {std::pair{&log_likelihood, &run.log_likelihood}, std::pair{&std_error, &run.std_error},
          std::pair{&ess, &run.ess}}) {
      table->resize(std::max(table->size(), repeat + 1));
      (*table)[repeat].insert((*table)[repeat].end(), values->begin(), values->end());
    }
    accept_prob.insert(accept_prob.end(), run.accept_prob.begin(), run.accept_prob.end());
    cost += run.cost;
    num_nonfinite += run.num_nonfinite;
    seconds += run.seconds;
  }
};

at::Tensor matrix(const std::vector<std::vector<double>>& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kDouble));
  return at::stack(tensors);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Transitions of each column of a plan: those that start below beta = 1.
std::vector<double> transitions(const Plan& plan) {
  const at::Tensor counts = (plan.betas.slice(0, 0, -1) < 1).sum(0).to(at::kDouble);
  return {counts.data_ptr<double>(), counts.data_ptr<double>() + counts.numel()};
}

/// Methods in the order in which they were asked for.
std::vector<std::pair<std::string, MethodTable>> tables(const EvalResults& results) {
  std::vector<std::pair<std::string, MethodTable>> list;
  for (const auto& [chunk, result] : results.chunks) {
    for (const auto& run : result.runs) {
      auto found = std::find_if(list.begin(), list.end(),
                                [&](const auto& entry) { return entry.first == run.method; });
      if (found == list.end()) found = list.insert(list.end(), {run.method, {}});
      found->second.add(run);
    }
  }
  return list;
}

void add_schedule(CsvWriter& csv, const std::string& image, const Plan& plan, int64_t column) {
  const at::Tensor beta = plan.betas.select(1, column).contiguous();
  const at::Tensor step_size = plan.step_sizes.select(1, column).contiguous();
  csv.add_row({image, int64_t{0}, 0.0, ""});
  for (int64_t i = 0; i < plan.num_steps() && beta[i].item<double>() < 1; ++i)
    csv.add_row({image, i + 1, beta[i + 1].item<double>(), step_size[i].item<double>()});
}

std::string results_table(const std::vector<MethodSummary>& summaries) {
  Table table({"method", "log p(x)", "data SE", "MC SE", "bits/dim", "ESS", "accept", "transitions",
               "evals/image", "+ tuning", "images", "label"},
              "Mean log-likelihood, nats");
  for (const auto& s : summaries)
    table.add_row({s.method, fixed(s.log_likelihood.mean, 3),
                   fixed(s.log_likelihood.data_std_error, 3),
                   significant(s.log_likelihood.monte_carlo_std_error, 2), fixed(s.bits_per_dim, 4),
                   fixed(s.ess_mean, 3), s.accept_prob ? fixed(*s.accept_prob, 3) : "-",
                   s.transitions ? significant(*s.transitions, 4) : "-",
                   with_commas(std::llround(s.evaluations)), significant(s.tuning_evaluations, 3),
                   with_commas(s.images), s.bound});
  return table.text();
}

/// image,method,repeat,log_likelihood,std_error,ess,accept_prob: a line per image, method, repeat.
std::string per_image_csv(const EvalResults& results) {
  CsvWriter csv({"image", "method", "repeat", "log_likelihood", "std_error", "ess", "accept_prob"});
  for (const auto& [chunk, result] : results.chunks)
    for (const auto& run : result.runs)
      for (size_t i = 0; i < result.indices.size(); ++i)
        csv.add_row({result.indices[i], run.method, run.repeat, run.log_likelihood[i],
                     run.std_error[i], run.ess[i],
                     run.accept_prob.empty() ? CsvCell("") : CsvCell(run.accept_prob[i])});
  return csv.text();
}

/// image,step,beta,step_size: a line per transition; image is "all" for a shared plan.
std::string schedule_csv(const EvalResults& results) {
  CsvWriter csv({"image", "step", "beta", "step_size"});
  if (results.shared_plan) add_schedule(csv, "all", *results.shared_plan, 0);
  for (const auto& [chunk, result] : results.chunks)
    for (size_t i = 0; result.plan && i < result.indices.size(); ++i)
      add_schedule(csv, std::to_string(result.indices[i]), *result.plan,
                   result.plan->betas.size(1) == 1 ? 0 : static_cast<int64_t>(i));
  return csv.text();
}

}  // namespace

std::vector<MethodSummary> summarise(const EvalResults& results) {
  std::vector<double> plan_transitions;
  Cost tuning = results.shared_tuning;
  for (const auto& [chunk, result] : results.chunks) {
    tuning += result.tuning;
    if (!result.plan) continue;
    const auto more = transitions(*result.plan);
    plan_transitions.insert(plan_transitions.end(), more.begin(), more.end());
  }
  if (results.shared_plan) plan_transitions = transitions(*results.shared_plan);

  std::vector<MethodSummary> summaries;
  for (const auto& [method, table] : tables(results)) {
    MethodSummary s;
    s.method = method;
    s.bound = to_string(Bound::kLower);  // Jensen: of every method there is
    s.repeats = static_cast<int64_t>(table.log_likelihood.size());
    s.images = static_cast<int64_t>(table.log_likelihood.front().size());
    s.log_likelihood = mean_over_images(matrix(table.log_likelihood), matrix(table.std_error));
    s.bits_per_dim = bits_per_dim(s.log_likelihood.mean, results.num_pixels);
    const at::Tensor ess = matrix(table.ess);
    s.ess_mean = ess.mean().item<double>();
    s.ess_min = ess.min().item<double>();
    const double runs = static_cast<double>(s.images) * static_cast<double>(s.repeats);
    s.evaluations = static_cast<double>(table.cost.densities) / runs;
    s.gradients = static_cast<double>(table.cost.gradients) / runs;
    s.num_nonfinite = table.num_nonfinite;
    s.seconds = table.seconds;
    if (!table.accept_prob.empty()) {
      s.accept_prob = mean(table.accept_prob);
      s.transitions = mean(plan_transitions);
      s.tuning_evaluations = static_cast<double>(tuning.densities) / static_cast<double>(s.images);
    }
    summaries.push_back(std::move(s));
  }
  return summaries;
}

json to_json(const MethodSummary& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  return {{"method", s.method},
          {"label", s.bound},
          {"images", s.images},
          {"repeats", s.repeats},
          {"log_likelihood", json_number(s.log_likelihood.mean)},
          {"data_std_error", json_number(s.log_likelihood.data_std_error)},
          {"monte_carlo_std_error", json_number(s.log_likelihood.monte_carlo_std_error)},
          {"bits_per_dim", json_number(s.bits_per_dim)},
          {"ess", {{"mean", json_number(s.ess_mean)}, {"min", json_number(s.ess_min)}}},
          {"accept_prob", optional(s.accept_prob)},
          {"transitions", optional(s.transitions)},
          {"evaluations_per_image",
           {{"tuning", s.tuning_evaluations},
            {"estimating", s.evaluations},
            {"estimating_with_gradient", s.gradients}}},
          {"nonfinite_proposals", s.num_nonfinite},
          {"thread_seconds", s.seconds}};
}

json summary_of(const json& run, const std::vector<MethodSummary>& methods) {
  json summary = run;
  summary["results"] = json::array();
  for (const auto& method : methods) summary["results"].push_back(to_json(method));
  return summary;
}

void print_results(const std::vector<MethodSummary>& methods, const std::string& folder) {
  std::cout
      << results_table(methods)
      << "A lower bound is one on average: E[estimate] <= log p(x). MC SE is the error of these "
         "chains,\ndata SE that of these images.\n";
  if (!folder.empty())
    std::cout << "Files: " << folder << "/summary.json, per_image.csv, schedule.csv\n";
  std::cout.flush();
}

void write_reports(const std::filesystem::path& folder, const EvalResults& results,
                   const json& summary) {
  write_file_atomic(folder / "per_image.csv", per_image_csv(results));
  write_file_atomic(folder / "schedule.csv", schedule_csv(results));
  write_file_atomic(folder / "summary.json", to_text(summary));
}

}  // namespace crais
