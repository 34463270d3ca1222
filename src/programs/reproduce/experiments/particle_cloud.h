// What samplers leave in the plane: particles to draw, and the modes they have reached.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/run_problems.h"
#include "report/plot.h"

namespace crais {

constexpr int64_t kDrawnParticles = 500;

/// What one sampler has left on one target.
struct Cloud {
  std::string failed;        // why there is nothing; else ""
  std::vector<double> x, y;  // some particles of the first run, with equal weights
  double ess = 0;            // mean over runs
  double transitions = 0, estimating = 0, tuning = 0;
  std::vector<double> log_normalizer;           // of each run
  std::vector<std::vector<double>> run_masses;  // of each run: of each mode
  std::vector<double> masses, mass_errors;      // of each mode, all runs together

  explicit Cloud(const nlohmann::json& cell);
};

/// Runs the replicates and keeps what a Cloud is made of, on one thread. `options` keep particles;
/// masses are there if they expect "modes". A plan that cannot be made is {"failed": why}.
nlohmann::json cloud_cell(const EstimateOptions& options, const ProblemSource& problems);

}  // namespace crais
