// What eval-loglik says at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/summary.h"

namespace crais {

struct EvalResults : RunResults {
  int64_t num_pixels = 0;
};

/// One method over all images and repeats.
struct LikelihoodSummary : MethodSummary {
  MeanEstimate log_likelihood;
  double bits_per_dim = 0.0;
};

std::vector<LikelihoodSummary> summarise(const EvalResults& results);

/// `run` (see ResultStore) with the methods' results: what summary.json holds.
nlohmann::json summary_of(const nlohmann::json& run, const std::vector<LikelihoodSummary>& methods);

/// The table, how to read it, and where the files are ("": there are none), on stdout.
void print_results(const std::vector<LikelihoodSummary>& methods, const std::string& folder);

/// per_image.csv, schedule.csv and summary.json.
void write_reports(const std::filesystem::path& folder, const EvalResults& results,
                   const nlohmann::json& summary);

}  // namespace crais
