// What eval-loglik says at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/summary.h"
#include "report/estimates.h"

namespace crais {

struct EvalResults : RunResults {
  int64_t num_pixels = 0;
  double bits_offset = 0.0;  // bits a dimension that make a density one of the stored numbers
};

/// One method over all images and repeats.
struct LikelihoodSummary : MethodSummary {
  MeanEstimate log_likelihood;
  double bits_per_dim = 0.0;
};

std::vector<LikelihoodSummary> summarise(const EvalResults& results);

/// `run` (see ResultStore) with the methods' results: what summary.json holds.
nlohmann::json summary_of(const nlohmann::json& run, const std::vector<LikelihoodSummary>& methods);

/// On stdout: the summary as JSON or CSV, or the table, how to read it, and where the files are
/// ("": there are none), in lines of at most `width` columns (0: no limit).
void print_results(const std::vector<LikelihoodSummary>& methods, const nlohmann::json& summary,
                   const std::string& folder, Format format, int width);

/// per_image.csv, schedule.csv and summary.json.
void write_reports(const std::filesystem::path& folder, const EvalResults& results,
                   const nlohmann::json& summary);

}  // namespace crais
