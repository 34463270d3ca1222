// Ways to estimate, side by side: what experiments compare.
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

/// One variant over all seeds: rows are seeds, columns problems. All NaN if it has failed.
struct VariantResult {
  at::Tensor value = at::full({1, 1}, NAN, at::kDouble);  // [S,N] nats
  at::Tensor std_error = value, bias = value;             // [S,N] nats
  at::Tensor upper, upper_std_error;                      // [S,N]; undefined without an upper bound
  at::Tensor flags = value;                               // [S,N], see Flag
  at::Tensor ess = value;                                 // [S,N] fractions
  double accept_prob = NAN;                               // mean over moves, of a method that moves
  double base = NAN, tuning = NAN, estimating = NAN;      // evaluations a problem
  double training_seconds = 0;                            // of a method that learns, on one thread
  double transitions = NAN;                               // mean over plans
  std::vector<Trace> traces;                              // of each seed's first plan
  std::string failed;                                     // why there are no numbers; else ""
  bool unfinished = false;  // because its plan has more than --max-steps

  /// The cell, or the first words of `failed`.
  Cell or_reason(Cell cell) const;
  double evaluations() const { return base + tuning + estimating; }
  double mean_ess() const { return ess.mean().item<double>(); }
  /// KL(base || target), as the pilot of the first seed estimates it; NaN without a pilot.
  double start_divergence() const;
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

/// What the first method finds for the problems, on one thread, with what `add` has to say of it.
/// A plan that cannot be made (PlanError) is a result too: {"failed": why}.
nlohmann::json estimate_cell(
    const EstimateOptions& options, const ProblemSource& problems,
    const std::function<void(const RunResults&, nlohmann::json&)>& add = {});

/// What seeds of one variant have found, by their cells.
VariantResult result_of(const std::vector<nlohmann::json>& cells);

/// The flags of a run that has the pilots of `flags` and is otherwise as cheap as can be: one
/// chain, and no plan longer than twice `steps`.
std::string pilot_flags(const std::string& flags, int64_t steps);

/// What variants are compared on.
class Subject {
 public:
  explicit Subject(ExperimentOptions options) : options_(std::move(options)) {}
  virtual ~Subject() = default;

  /// One task per variant and seed; seeds count from `first_seed`.
  std::vector<VariantResult> run(const std::string& label, const std::vector<Variant>& variants,
                                 int64_t seeds = 1, uint64_t first_seed = 0) const;

  /// What `flags` leave open with an `@`, chosen such that the plans of `run` with as many seeds
  /// have `steps` transitions. See match_transitions.
  MatchedPlans match(const std::string& flags, int64_t steps, int64_t seeds = 1) const;

 protected:
  /// Ends in `estimate_cell`. Only pilots count where `for_plans`.
  virtual Task task(const std::string& flags, uint64_t seed, bool for_plans) const = 0;
  const ExperimentOptions& options() const { return options_; }

 private:
  std::vector<VariantResult> run_tasks_of(const std::string& label,
                                          const std::vector<Variant>& variants, int64_t seeds,
                                          uint64_t first_seed, bool for_plans) const;

  ExperimentOptions options_;
};

}  // namespace crais
