// Plans within a budget, and those of replicates that share a base of several parts.
#pragma once

#include "evaluation/parts.h"

namespace crais {

/// Fits bases for as many of the target's problems as a twentieth of the budget allows, and lets
/// plan_within divide the rest between chains and temperatures. `num_problems` share the pilots,
/// and what was `spent` before, on choosing the base. Throws BudgetError, ScheduleError. Cost:
/// returned; the budget has room for it.
TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent);

/// True if each chunk of replicates fits a base of its own, and with it plans.
bool plans_by_chunk(const Target& target, const std::string& base);

/// Temperatures and step sizes for each part of the base, tuned on one replicate. Within a `budget`
/// the chunk's pilots and base come first, and what is left of it buys as many temperatures as
/// kFewChains chains of each part allow, up to kMostSteps, then chains. Cost: of the pilot.
TunedPlan replicated_plan(const EstimatorParts& parts, const Problem& problem, const Cost& base,
                          uint64_t stream);

}  // namespace crais
