// The result of a variant, which is flags of eval-loglik or estimate-logz, over seeds and problems.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/run_problems.h"

namespace crais {

/// A plan from beta = 0 to 1, with its pilot's estimates of the divergence (empty without a pilot).
struct Trace {
  std::vector<double> betas, divergence;
};

/// The results of one variant: rows are seeds, columns problems. All NaN if it has failed.
struct VariantResult {
  at::Tensor value = at::full({1, 1}, NAN, at::kDouble);  // [S,N] nats
  at::Tensor std_error = value, bias = value;             // [S,N] nats
  at::Tensor upper, upper_std_error;                      // [S,N]; undefined without an upper bound
  at::Tensor flags = value;                               // [S,N], see Flag
  at::Tensor ess = value;                                 // [S,N] fractions
  double accept_prob = NAN;                               // mean over moves, if the method moves
  double base = NAN, tuning = NAN, estimating = NAN;      // evaluations a problem
  double training_seconds = 0;                            // if the method learns, on one thread
  double transitions = NAN;                               // mean over plans
  std::vector<Trace> traces;                              // of the first plan of each seed
  at::Tensor masses;         // [R,M] of the modes in each run, if it was asked for
  std::vector<double> x, y;  // particles, if they were asked for
  std::string failed;        // the reason of a failure; else ""
  bool unfinished = false;   // failed because its plan has more than --max-steps steps

  /// The first words of `failed`.
  std::string reason() const;
  double evaluations() const { return base + tuning + estimating; }
  /// KL(base || target), estimated by the pilot of the first seed; NaN without a pilot.
  double start_divergence() const;
};

/// The command line of a variant: `operand`, its flags and --seed.
std::vector<std::string> arguments_of(const std::string& operand, const std::string& flags,
                                      uint64_t seed);

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
