// Plans within a budget, and plans of replicates that share a base of several parts.
#pragma once

#include "evaluation/parts.h"

namespace crais {

/// Fits bases for as many of the target's problems as a twentieth of the budget allows, and lets
/// plan_within divide the rest between chains and temperatures. `num_problems` problems share the
/// cost of the pilots and the cost `spent` earlier on choosing the base. Throws BudgetError,
/// ScheduleError. Cost: returned; it is within the budget.
TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent);

/// True if each chunk of replicates fits a base of its own, and with it plans.
bool plans_by_chunk(const Target& target, const std::string& base);

/// Temperatures and step sizes for each part of the base, tuned on one replicate. A `budget` pays
/// first for the chunk's pilots and base. The rest pays for as many temperatures as kFewChains
/// chains of each part allow, at most kMostSteps, then for more chains. Cost: that of the pilot.
TunedPlan replicated_plan(const EstimatorParts& parts, const Problem& problem, const Cost& base,
                          uint64_t stream);

}  // namespace crais
