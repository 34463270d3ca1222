// One plan within a budget: `budget`.
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

}  // namespace crais
