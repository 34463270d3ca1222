// The final report of eval-loglik.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/run_report.h"

namespace crais {

struct EvalResults : RunResults {
  int64_t num_pixels = 0;
  double bits_offset = 0.0;  // bits a dimension from the density of x to that of stored numbers
  std::optional<double> error = {};  // limit of the control's gap, nats
  bool is_error_asked = false;       // else it is the default
  at::Tensor thumbnails;  // one row an image, in the order of chunks; undefined: no pictures
};

/// The summary of one method over all images and repeats.
struct LikelihoodSummary : MethodSummary {
  MeanEstimate log_likelihood;
  double bits_per_dim = 0.0;
};

std::vector<LikelihoodSummary> summarise(const EvalResults& results);

/// The report of finished results, without `run` and `progress`. `summary` holds further facts
/// about the run; `about` is a line for people below the tables.
RunReport report_of(EvalResults results, nlohmann::json summary, const std::string& about = "");

}  // namespace crais
