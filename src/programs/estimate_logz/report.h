// What estimate-logz says at the end.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "programs/estimate_logz/expectations.h"
#include "report/estimates.h"

namespace crais {

/// Replicates of one target.
struct LogzResults : RunResults {
  std::string target;  // "normal:128"
  int64_t dim = 0;
  std::optional<double> truth;  // nats
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

/// On stdout: the summary as JSON or CSV, or the table and how to read it, in lines of at most
/// `width` columns (0: no limit).
void print_results(const LogzResults& results, const std::vector<LogzSummary>& summaries,
                   const std::vector<TargetExpectation>& expectations,
                   const nlohmann::json& summary, const std::string& folder, Format format,
                   int width);

/// `estimate-logz list`: every target with its parameters and what it is.
std::string list_targets(int width);

}  // namespace crais
