// What estimate-logz says at the end.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "programs/estimate_logz/expectations.h"
#include "report/plot.h"
#include "report/run_report.h"
#include "report/table.h"

namespace crais {

/// Replicates of one target.
struct LogzResults : RunResults {
  std::string target;  // "normal:128"
  int64_t dim = 0;
  std::optional<double> truth;          // nats
  std::optional<Scatter> cloud;         // particles of a target in the plane, where they were kept
  std::vector<std::string> notes = {};  // what was made of a function that is the target
};

/// One method over its N estimates, problems times repeats: all of one number.
struct LogzSummary : MethodSummary {
  double mean = 0.0;       // of log Z-hat, nats
  double std_error = 0.0;  // of that mean: spread / sqrt(N); the chains' own where N = 1
  // Where the truth is known, nats: mean - truth, that over its standard error, and
  // sqrt(mean (log Z-hat - truth)^2).
  std::optional<double> error, z_score, root_mean_square_error;
};

std::vector<LogzSummary> summarise(const LogzResults& results);
nlohmann::json to_json(const LogzSummary& summary);

/// Of the methods, and of the bounds where there are two.
std::vector<Table> result_tables(const LogzResults& results,
                                 const std::vector<LogzSummary>& methods);

/// The report of finished results, without `run` and `progress`. `summary` says what is known
/// beside them.
RunReport report_of(LogzResults results, const std::vector<TargetExpectation>& expectations,
                    nlohmann::json summary);

/// report.html of finished results; `summary` is what summary.json says.
std::string page_of(const LogzResults& results, const std::vector<LogzSummary>& methods,
                    const std::vector<TargetExpectation>& expectations,
                    const nlohmann::json& summary);

}  // namespace crais
