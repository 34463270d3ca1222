#include "programs/estimate_logz/report.h"

#include <cmath>
#include <iostream>

#include "core/target.h"
#include "io/json.h"
#include "report/terminal.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

LogzSummary summarise_one(const MethodTable& table, const LogzResults& results) {
  LogzSummary s;
  static_cast<MethodSummary&>(s) = summarise_method(table, results);
  const at::Tensor values = table.matrix("log_normalizer");
  const auto n = static_cast<double>(values.numel());
  s.mean = values.mean().item<double>();
  s.std_error = n > 1 ? values.flatten().std(0, /*unbiased=*/true).item<double>() / std::sqrt(n)
                      : table.matrix("std_error").item<double>();
  if (results.truth) {
    s.error = s.mean - *results.truth;
    s.z_score = *s.error / s.std_error;
    s.root_mean_square_error = std::sqrt((values - *results.truth).square().mean().item<double>());
  }
  return s;
}

}  // namespace

std::vector<LogzSummary> summarise(const LogzResults& results) {
  std::vector<LogzSummary> summaries;
  for (const MethodTable& table : tables(results))
    summaries.push_back(summarise_one(table, results));
  return summaries;
}

json to_json(const LogzSummary& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json_number(*value) : json(nullptr);
  };
  json object = to_json(s, "problem");
  object["log_normalizer"] = json_number(s.mean);
  object["monte_carlo_std_error"] = json_number(s.std_error);
  object["error"] = optional(s.error);
  object["z_score"] = optional(s.z_score);
  object["root_mean_square_error"] = optional(s.root_mean_square_error);
  return object;
}

void print_results(const LogzResults& results, const std::vector<LogzSummary>& summaries,
                   const std::vector<TargetExpectation>& expectations, const json& summary,
                   const std::string& folder, Format format, int width) {
  if (print_for_programs(summary, format)) return;
  std::vector<std::string> headers = {"log Z", "MC SE"};
  if (results.truth) headers.insert(headers.end(), {"truth", "error", "z"});
  MethodsTable table("problem",
                     "Log normaliser of " + results.target + " (dimension " +
                         std::to_string(results.dim) + "), nats",
                     headers);
  std::vector<double> lower;
  for (const LogzSummary& s : summaries) {
    lower.push_back(s.mean);
    std::vector<std::string> cells = {fixed(s.mean, 4), significant(s.std_error, 2)};
    if (results.truth)
      cells.insert(cells.end(),
                   {fixed(*results.truth, 4), fixed(*s.error, 4), fixed(*s.z_score, 1)});
    table.add(s, cells);
  }
  std::string reading =
      "A lower bound is one on average: E[estimate] <= log Z. MC SE is the error of the mean over "
      "problems, replicates of one density; bias is what the chains' errors suggest";
  if (results.truth)
    reading += "; z is the error in units of MC SE, far below 0 where the bound is loose";
  std::cout << table.text(width) << wrapped(reading + ".", width);
  const std::string certificates = certificate_table({summaries.begin(), summaries.end()}, lower,
                                                     "Bounds on log Z, nats", width);
  if (!certificates.empty())
    std::cout << certificates << "The truth lies between the bounds on average.\n";
  for (const TargetExpectation& e : expectations) std::cout << expectation_table(e, width);
  if (!folder.empty())
    std::cout << "Files: " << folder << "/summary.json, per_problem.csv, schedule.csv"
              << (expectations.empty() ? "" : ", expectations.csv") << "\n";
  std::cout << std::flush;
}

std::string list_targets(int width) {
  Table table({"target", "density"});
  for (const auto& [name, entry] : TargetRegistry::instance().entries())
    table.add_row({entry.usage, entry.summary});
  return table.text(width);
}

}  // namespace crais
