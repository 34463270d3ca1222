// The final report of estimate-logz.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "estimates/expectation.h"
#include "evaluation/summary.h"
#include "report/run_report.h"

namespace crais {

/// The estimate of one function by one method, over all problems and repeats, which are replicates
/// of one density.
struct TargetExpectation {
  std::string method, name;          // "ais", "moments"
  std::vector<std::string> outputs;  // "z1", "z2"
  ExpectationEstimate estimate;
  std::optional<at::Tensor> truth;  // [J], true means
};

/// Throws Error kArgument for a function that does not know the target.
void check_expectations(const std::vector<std::string>& names, const Target& target);

std::vector<TargetExpectation> expectations_of(const RunResults& results,
                                               const std::vector<std::string>& names,
                                               const Target& target);

/// The results of replicates of one target.
struct LogzResults : RunResults {
  std::string target;  // "normal:128"
  int64_t dim = 0;
  std::optional<double> truth;          // nats
  std::optional<nlohmann::json> cloud;  // particles of a target in the plane, [x, y], equal weights
  std::vector<std::string> notes = {};  // remarks on a target that is a function
  std::vector<DoubtEntry> doubts = {};  // of the density, whatever the results are
  bool is_single = false;               // the density is computed in float32
};

/// The summary of one method over its N = problems times repeats estimates of one number.
struct LogzSummary : MethodSummary {
  double mean = 0.0;       // of log Z-hat, nats
  double std_error = 0.0;  // of the mean: see error_of_replicates
  // If the truth is known, nats: mean - truth, that difference over its standard error, and
  // sqrt(mean (log Z-hat - truth)^2).
  std::optional<double> error, z_score, root_mean_square_error;
};

std::vector<LogzSummary> summarise(const LogzResults& results);
nlohmann::json to_json(const LogzSummary& summary);

/// The report of finished results, without `run` and `progress`. `summary` holds further facts
/// about the run.
RunReport report_of(LogzResults results, const std::vector<TargetExpectation>& expectations,
                    nlohmann::json summary);

}  // namespace crais
