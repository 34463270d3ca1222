// Variants of an estimate, which experiments compare.
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
#include "programs/reproduce/experiment.h"
#include "programs/reproduce/findings.h"
#include "programs/reproduce/matching.h"

namespace crais {

/// A variant of an estimate as flags of eval-loglik or estimate-logz: these programs can repeat
/// each number.
struct Variant {
  std::string name;
  std::string flags;
};

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
  std::string failed;                                     // the reason of a failure; else ""
  bool unfinished = false;  // failed because its plan has more than --max-steps steps

  /// The cell, or the first words of `failed`.
  Cell or_reason(Cell cell) const;
  double evaluations() const { return base + tuning + estimating; }
  double mean_ess() const { return ess.mean().item<double>(); }
  /// KL(base || target), estimated by the pilot of the first seed; NaN without a pilot.
  double start_divergence() const;
};

/// Flags for plans of `steps` transitions under a schedule: directly if its temperatures are known
/// in advance, else by stretching the rule's plan.
std::string flags_of_plans(const std::string& schedule, int64_t steps);

/// `flags` changed for a schedule that is known in advance: if step sizes are known too, there is
/// no pilot, and problems share the plan.
std::string without_pilot(const std::string& flags);

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

/// The problems on which variants are compared.
class Subject {
 public:
  explicit Subject(ExperimentOptions options) : options_(std::move(options)) {}
  virtual ~Subject() = default;

  /// Runs one task for each variant and seed. Seeds count from `first_seed`.
  std::vector<VariantResult> run(const std::string& label, const std::vector<Variant>& variants,
                                 int64_t seeds = 1, uint64_t first_seed = 0) const;

  /// Replaces the `@` in `flags` such that the plans of `run` with as many seeds have `steps`
  /// transitions. See match_transitions.
  MatchedPlans match(const std::string& flags, int64_t steps, int64_t seeds = 1) const;

 protected:
  /// A task that ends with `estimate_cell`. If `for_plans`, only its pilots count.
  virtual Task task(const std::string& flags, uint64_t seed, bool for_plans) const = 0;
  const ExperimentOptions& options() const { return options_; }

 private:
  std::vector<VariantResult> run_tasks_of(const std::string& label,
                                          const std::vector<Variant>& variants, int64_t seeds,
                                          uint64_t first_seed, bool for_plans) const;

  ExperimentOptions options_;
};

}  // namespace crais
