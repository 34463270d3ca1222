// Choices made by pilots: the base `auto`, the type of forces, the plan within a budget.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "evaluation/parts.h"

namespace crais {

using Rule = std::shared_ptr<const BaseRule>;

struct BaseChoice {
  Rule rule;
  std::optional<Plan> plan;  // made by its pilots
  Cost cost;                 // of fitting and trying all candidates
};

/// Chooses the first of base_candidates (usually Laplace), unless the estimates of another
/// candidate on pilots are clearly higher (by the 95% interval of the paired difference). Every
/// estimate is a lower bound on average, so the highest is the best. If nothing is annealed: the
/// encoder if there is one, else Laplace.
/// Under a budget, a first one whose fit takes too much gives way to `variational`. Where chains
/// end at 1.25 times a base's mean square, it is refitted by observed curvatures, unless the refit
/// is clearly lower.
/// A candidate whose schedule cannot reach the target (ScheduleError) is skipped; the last error is
/// thrown if none is left. Under a budget, pilots take a twentieth of that of `num_problems`; if it
/// is too little, the first is chosen. Cost: for each, a base, a pilot and an estimate's chains.
BaseChoice choose_base(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                       std::optional<at::ScalarType> forces = {});

/// Candidates in order of preference: a later one must be clearly better to be chosen. `modes` and
/// the prior where there may be several modes; else `laplace`, `modes`, an encoder if there is one,
/// and the prior.
/// - Fits are 1.1 times as wide for chains of 64 temperatures or more, which can return from tails.
/// - Under a budget, which sets temperatures later, a fit costs at most two fifths of it.
/// - `variational` refines a fit if that costs at most a fifth of the estimate.
std::vector<Rule> base_candidates(const EstimatorParts& parts, const Target& target,
                                  int64_t num_problems);

/// The value of `force_dtype` for problems such as `pilots`: at::kBFloat16, or nothing for forces
/// as exact as values.
/// `auto` chooses bfloat16 if the target says that it is faster and pilots accept as many moves as
/// with exact forces: of the same particles and random numbers, at beta = 1, mean acceptance may
/// lose 0.02 at each of some step sizes. Any force is valid, because acceptance uses the density.
/// Kernels with cheap forces compute it in another way: their mean error at these particles must be
/// at most 0.001 nats, for a log-density of a thousand or less.
/// Throws Error kArgument if `bfloat16` is asked for and the target has no such forces. Cost, added
/// to `cost`: with each type of force 1 + 7 L evaluations of 4 particles a pilot. If all bases take
/// more than 2,000 evaluations, fewer pilots have more particles each.
std::optional<at::ScalarType> choose_forces(const EstimatorParts& parts, const Target& pilots,
                                            Cost& cost);

/// Fits bases for as many of the target's problems as a twentieth of the budget allows, and lets
/// plan_within divide the rest between chains and temperatures. `num_problems` problems share the
/// cost of the pilots and the cost `spent` earlier on choosing the base. Throws BudgetError,
/// ScheduleError. Cost: returned; it is within the budget.
TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent);

}  // namespace crais
