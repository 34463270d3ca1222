// What eval-loglik says at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/estimator.h"
#include "estimates/estimate.h"

namespace crais {

/// What reverse chains add: an upper bound, and how far it is from the lower one.
struct Certificate {
  MeanEstimate upper;  // of log p(x)
  double gap = 0.0;    // upper - lower, mean over images, nats
  double gap_std_error = 0.0;
  double largest_gap = 0.0;
};

/// One method over all images and repeats.
struct MethodSummary {
  std::string method;
  std::string base;
  std::string bound;
  int64_t images = 0;
  int64_t repeats = 1;
  MeanEstimate log_likelihood;
  std::optional<Certificate> certificate;
  double bias = 0.0;  // to be expected, nats; NaN: unknown
  double bits_per_dim = 0.0;
  double ess_mean = 0.0, ess_min = 0.0;  // fractions
  std::optional<double> accept_prob;
  std::optional<double> transitions;     // mean over images
  std::map<std::string, int64_t> flags;  // how many estimates have which; "any" for at least one
  // An image, all chains together; what images share is spread over them.
  double base_evaluations = 0.0;
  double tuning_evaluations = 0.0;
  double evaluations = 0.0;  // of one repeat
  double gradients = 0.0;    // those of them that asked for a gradient
  int64_t num_nonfinite = 0;
  double seconds = 0.0;  // of one thread, all images and repeats, without tuning
};

/// The finished part of an evaluation, in the order of chunks.
struct EvalResults {
  std::map<int64_t, ChunkResult> chunks;
  Shared shared;
  int64_t num_pixels = 0;
};

std::vector<MethodSummary> summarise(const EvalResults& results);
nlohmann::json to_json(const MethodSummary& summary);

/// `run` (see EvalStore) with the methods' results: what summary.json holds.
nlohmann::json summary_of(const nlohmann::json& run, const std::vector<MethodSummary>& methods);

/// The table, how to read it, and where the files are ("": there are none), on stdout.
void print_results(const std::vector<MethodSummary>& methods, const std::string& folder);

/// per_image.csv, schedule.csv and summary.json.
void write_reports(const std::filesystem::path& folder, const EvalResults& results,
                   const nlohmann::json& summary);

}  // namespace crais
