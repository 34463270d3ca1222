// What estimate-logz says at the end.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/estimate_logz_run.h"

namespace crais {

/// One method over its N estimates (problems times repeats).
struct LogzSummary {
  std::string method;
  std::string bound;
  int64_t estimates = 0;
  double mean = 0.0;       // of log Z-hat, nats
  double std_error = 0.0;  // of that mean: spread / sqrt(N); the chains' own where N = 1
  double ess_mean = 0.0, ess_min = 0.0;
  std::optional<double> accept_prob;
  std::optional<double> transitions;
  // An estimate, all chains together; tuning is spread over them.
  double evaluations = 0.0, gradients = 0.0, tuning_evaluations = 0.0;
  int64_t num_nonfinite = 0;
  double seconds = 0.0;
  // Where the truth is known, nats: mean - truth, that over its standard error, and
  // sqrt(mean (log Z-hat - truth)^2).
  std::optional<double> error, z_score, root_mean_square_error;
};

std::vector<LogzSummary> summarise(const LogzResults& results);
nlohmann::json to_json(const LogzSummary& summary);

/// The table and how to read it, on stdout.
void print_results(const std::string& target, const LogzResults& results,
                   const std::vector<LogzSummary>& summaries, const std::string& folder);

/// problem,method,repeat,log_normalizer,std_error,ess,accept_prob,error: a line an estimate.
std::string per_problem_csv(const LogzResults& results, int64_t num_problems);

/// problem,step,beta,step_size: a line a transition; problem is "all" for a shared plan.
std::string schedule_csv(const LogzResults& results);

/// `estimate-logz list`: every target with its parameters and what it is.
std::string list_targets();

}  // namespace crais
