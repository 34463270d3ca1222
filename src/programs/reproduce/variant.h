// The result of a variant, which is flags of eval-loglik or estimate-logz, over seeds and problems.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/run_problems.h"

namespace crais {

/// A plan from beta = 0 to 1, with its pilot's estimates of the divergence (empty without a pilot).
struct Trace {
  std::vector<double> betas, divergence;
};

/// The results of one variant: rows are seeds, columns problems. Empty if it has failed.
struct VariantResult {
  std::map<std::string, at::Tensor> columns;  // [S,N] by name: see ChunkRun::columns, and `flags`
  // Over seeds: evaluations of a problem, transitions of a plan, what learning took on one thread.
  std::map<std::string, double> means = {{"base", NAN},
                                         {"tuning", NAN},
                                         {"estimating", NAN},
                                         {"transitions", NAN},
                                         {"training_seconds", 0}};
  std::vector<Trace> traces;  // of the first plan of each seed
  at::Tensor masses;          // [R,M] of the modes in each run, if it was asked for
  std::vector<double> x, y;   // particles, if they were asked for
  std::string failed;         // the reason of a failure; else ""
  bool unfinished = false;    // failed because its plan has more than --max-steps steps

  /// NaN [1,1] if there is none.
  at::Tensor column(const std::string& name) const;
  double evaluations() const {
    return means.at("base") + means.at("tuning") + means.at("estimating");
  }
};

/// The result of the first method for the problems, on one thread, with the additions of `add`. If
/// a plan cannot be made (PlanError), the result is {"failed": why}.
nlohmann::json estimate_cell(
    const EstimateOptions& options, const ProblemSource& problems,
    const std::function<void(const RunResults&, nlohmann::json&)>& add = {});

/// The results of the seeds of one variant, from their cells.
VariantResult result_of(const std::vector<nlohmann::json>& cells);

/// Flags for a run with the pilots of `flags` that is otherwise as cheap as possible: one chain,
/// and plans of at most twice `steps`.
std::string pilot_flags(const std::string& flags, int64_t steps);

}  // namespace crais
