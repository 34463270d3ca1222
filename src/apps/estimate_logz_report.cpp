#include "apps/estimate_logz_report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <utility>

#include "core/format.h"
#include "data/csv.h"
#include "report/json.h"
#include "report/table.h"

namespace crais {
namespace {

using nlohmann::json;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double mean_square(const std::vector<double>& values, double around) {
  double sum = 0.0;
  for (const double value : values) sum += (value - around) * (value - around);
  return sum / static_cast<double>(values.size());
}

/// Every column's transitions below beta = 1, averaged.
double mean_transitions(const LogzResults& results) {
  std::vector<Plan> plans = results.plans;
  if (results.shared_plan) plans = {*results.shared_plan};
  std::vector<double> counts;
  for (const Plan& plan : plans) {
    const at::Tensor count = (plan.betas.slice(0, 0, -1) < 1).sum(0).to(at::kDouble);
    counts.insert(counts.end(), count.data_ptr<double>(), count.data_ptr<double>() + count.numel());
  }
  return mean(counts);
}

void add_schedule(CsvWriter& csv, const std::string& problem, const Plan& plan, int64_t column) {
  const at::Tensor beta = plan.betas.select(1, column).contiguous();
  const at::Tensor step_size = plan.step_sizes.select(1, column).contiguous();
  csv.add_row({problem, int64_t{0}, 0.0, ""});
  for (int64_t i = 0; i < plan.num_steps() && beta[i].item<double>() < 1; ++i)
    csv.add_row({problem, i + 1, beta[i + 1].item<double>(), step_size[i].item<double>()});
}

}  // namespace

std::vector<LogzSummary> summarise(const LogzResults& results) {
  std::vector<LogzSummary> summaries;
  for (const LogzResult& result : results.methods) {
    const std::vector<double>& values = result.log_normalizer;
    const auto n = static_cast<double>(values.size());
    LogzSummary s;
    s.method = result.method;
    s.bound = to_string(result.bound);
    s.estimates = static_cast<int64_t>(values.size());
    s.mean = mean(values);
    s.std_error =
        n > 1 ? std::sqrt(mean_square(values, s.mean) / (n - 1)) : result.std_error.front();
    s.ess_mean = mean(result.ess);
    s.ess_min = *std::min_element(result.ess.begin(), result.ess.end());
    s.evaluations = static_cast<double>(result.cost.densities) / n;
    s.gradients = static_cast<double>(result.cost.gradients) / n;
    s.num_nonfinite = result.num_nonfinite;
    s.seconds = result.seconds;
    if (!result.accept_prob.empty()) {
      s.accept_prob = mean(result.accept_prob);
      s.transitions = mean_transitions(results);
      s.tuning_evaluations = static_cast<double>(results.tuning.densities) / n;
    }
    if (results.truth) {
      s.error = s.mean - *results.truth;
      s.z_score = *s.error / s.std_error;
      s.root_mean_square_error = std::sqrt(mean_square(values, *results.truth));
    }
    summaries.push_back(std::move(s));
  }
  return summaries;
}

json to_json(const LogzSummary& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  return {{"method", s.method},
          {"label", s.bound},
          {"estimates", s.estimates},
          {"log_normalizer", json_number(s.mean)},
          {"monte_carlo_std_error", json_number(s.std_error)},
          {"error", optional(s.error)},
          {"z_score", optional(s.z_score)},
          {"root_mean_square_error", optional(s.root_mean_square_error)},
          {"ess", {{"mean", json_number(s.ess_mean)}, {"min", json_number(s.ess_min)}}},
          {"accept_prob", optional(s.accept_prob)},
          {"transitions", optional(s.transitions)},
          {"evaluations_per_estimate",
           {{"tuning", s.tuning_evaluations},
            {"estimating", s.evaluations},
            {"estimating_with_gradient", s.gradients}}},
          {"nonfinite_proposals", s.num_nonfinite},
          {"thread_seconds", s.seconds}};
}

void print_results(const std::string& target, const LogzResults& results,
                   const std::vector<LogzSummary>& summaries, const std::string& folder) {
  std::vector<std::string> headers = {"method", "log Z", "MC SE"};
  if (results.truth) headers.insert(headers.end(), {"truth", "error", "z"});
  headers.insert(headers.end(), {"ESS", "accept", "transitions", "evals/estimate", "+ tuning",
                                 "estimates", "label"});
  Table table(headers, "Log normaliser of " + target + " (dimension " +
                           std::to_string(results.dim) + "), nats");
  for (const LogzSummary& s : summaries) {
    std::vector<std::string> row = {s.method, fixed(s.mean, 4), significant(s.std_error, 2)};
    if (results.truth)
      row.insert(row.end(), {fixed(*results.truth, 4), fixed(*s.error, 4), fixed(*s.z_score, 1)});
    row.insert(row.end(),
               {fixed(s.ess_mean, 3), s.accept_prob ? fixed(*s.accept_prob, 3) : "-",
                s.transitions ? significant(*s.transitions, 4) : "-",
                with_commas(std::llround(s.evaluations)), significant(s.tuning_evaluations, 3),
                with_commas(s.estimates), s.bound});
    table.add_row(row);
  }
  std::cout << table.text()
            << "A lower bound is one on average: E[estimate] <= log Z. MC SE is the error of the "
               "mean over\nthe estimates"
            << (results.truth
                    ? "; z is the error in its units, far below 0 where the bound is loose"
                    : "")
            << ".\n";
  if (!folder.empty())
    std::cout << "Files: " << folder << "/summary.json, per_problem.csv, schedule.csv\n";
  std::cout.flush();
}

std::string per_problem_csv(const LogzResults& results, int64_t num_problems) {
  CsvWriter csv({"problem", "method", "repeat", "log_normalizer", "std_error", "ess", "accept_prob",
                 "error"});
  const auto problems = static_cast<size_t>(num_problems);
  for (const LogzResult& m : results.methods)
    for (size_t i = 0; i < m.log_normalizer.size(); ++i)
      csv.add_row({i % problems, m.method, i / problems, m.log_normalizer[i], m.std_error[i],
                   m.ess[i], m.accept_prob.empty() ? CsvCell("") : CsvCell(m.accept_prob[i]),
                   results.truth ? CsvCell(m.log_normalizer[i] - *results.truth) : CsvCell("")});
  return csv.text();
}

std::string schedule_csv(const LogzResults& results) {
  CsvWriter csv({"problem", "step", "beta", "step_size"});
  if (results.shared_plan) add_schedule(csv, "all", *results.shared_plan, 0);
  int64_t problem = 0;
  for (const Plan& plan : results.plans)
    for (int64_t column = 0; column < plan.betas.size(1); ++column)
      add_schedule(csv, std::to_string(problem++), plan, column);
  return csv.text();
}

std::string list_targets() {
  Table table({"target", "density"});
  for (const auto& [name, entry] : TargetRegistry::instance().entries())
    table.add_row({entry.usage, entry.summary});
  return table.text();
}

}  // namespace crais
