// Ways to estimate, side by side: what experiments compare.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/target.h"
#include "evaluation/run_problems.h"
#include "programs/reproduce/experiment.h"
#include "programs/reproduce/matching.h"
#include "report/plot.h"

namespace crais {

/// A way to estimate, written as flags of eval-loglik or estimate-logz, so that each number can be
/// had again there.
struct Variant {
  std::string name;
  std::string flags;
};

/// A plan from beta = 0 to 1, and its pilot's estimates of the divergence (empty without a pilot).
struct Trace {
  std::vector<double> betas, divergence;
};

/// One variant over all seeds: rows are seeds, columns problems.
struct VariantResult {
  at::Tensor value, std_error, bias;            // [S,N] nats
  at::Tensor upper, upper_std_error;            // [S,N]; undefined without an upper bound
  at::Tensor flags;                             // [S,N], see Flag
  at::Tensor ess;                               // [S,N] fractions
  double accept_prob = NAN;                     // mean over moves; NaN: of a method without
  double base = 0, tuning = 0, estimating = 0;  // evaluations a problem
  double training_seconds = 0;                  // of a method that learns, on one thread
  double transitions = 0;                       // mean over plans
  std::vector<Trace> traces;                    // of each seed's first plan
  std::string failed;                           // why there are no numbers; else ""
  bool unfinished = false;                      // because its plan has more than --max-steps

  /// The first words of `failed`, for a table.
  std::string reason() const;
  double evaluations() const { return base + tuning + estimating; }
};

/// Flags of plans of `steps` transitions under a schedule: so many where its temperatures are known
/// beforehand; else what the rule finds, stretched.
std::string flags_of_plans(const std::string& schedule, int64_t steps);

/// `flags` for a schedule that is known beforehand: where step sizes are too, there is no pilot,
/// and no plan for each problem.
std::string without_pilot(const std::string& flags);

/// The command line of a variant: `operand`, the flags and --seed.
std::vector<std::string> arguments_of(const std::string& operand, const std::string& flags,
                                      uint64_t seed);

/// What the first method finds for the problems, on one thread.
/// A plan that cannot be made (PlanError) is a result too: {"failed": why}.
nlohmann::json estimate_cell(const EstimateOptions& options, const ProblemSource& problems);

/// The same of a run that was made: of its first method.
nlohmann::json cell_of(const RunResults& results);

/// One task per variant and seed, each of which ends in `estimate_cell`; seeds count from
/// `first_seed`.
std::vector<VariantResult> run_variants(
    const ExperimentOptions& options, const std::string& label,
    const std::vector<Variant>& variants, int64_t seeds, uint64_t first_seed,
    const std::function<Task(const std::string& flags, uint64_t seed)>& make_task);

/// The flags of a run that has the pilots of `flags` and is otherwise as cheap as can be: one
/// chain, and no plan longer than twice `steps`.
std::string pilot_flags(const std::string& flags, int64_t steps);

/// What `flags` leave open with an `@`, chosen such that plans have `steps` transitions, by what
/// `run` says of each variant. See match_transitions.
MatchedPlans match_variant(
    const std::string& flags, int64_t steps,
    const std::function<std::vector<VariantResult>(const std::vector<Variant>&)>& run);

/// A number of a run with other than `steps` transitions says so: "-0.71 (M = 49)".
Cell at_length(double value, int decimals, double transitions, int64_t steps);

/// Values along a plan against the fraction of its transitions, in no more points than a picture
/// shows.
Series along_plan(const std::string& name, const std::vector<double>& values);

/// The mean over the first dimension, and its standard error.
struct Spread {
  double mean, std_error;
  Spread(double mean_value, double error) : mean(mean_value), std_error(error) {}
  explicit Spread(const at::Tensor& values);
};

/// The paired difference of two samples [S], and its t statistic.
struct Paired {
  Spread difference;
  double t;
  Paired(const at::Tensor& a, const at::Tensor& b)
      : difference(a - b), t(difference.mean / difference.std_error) {}
};

}  // namespace crais
