#include "evaluation/budgeted_plan.h"

#include <cmath>

#include "samplers/budget.h"

namespace crais {
namespace {

/// Few are long, and fewer would say nothing of their own error. Particles that resampling keeps
/// need company. Of bounds, chains both ways say how far they are apart.
int64_t num_chains(const EstimatorParts& parts) {
  constexpr int64_t kChains = 8, kBounding = 2, kResampled = 32;
  if (parts.resampling) return kResampled;
  return parts.needs_exact_draws() ? kBounding : kChains;
}

}  // namespace

TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent) {
  // How many pilots there may be follows from what the first problem's base costs; a fit of many
  // problems goes on until the last has arrived.
  const Base first = fit_base(parts, rule, *target.slice(0, 1), kSharedStream);
  Budget budget{*parts.options.budget, num_problems, static_cast<double>(parts.num_anneals()),
                first.cost.densities, num_chains(parts)};
  const PilotSize size =
      pilot_size(budget, parts.transition->evaluations_per_step(), target.num_problems());
  const auto pilots = target.slice(0, size.num_problems);
  Base base = first;
  Cost before = first.cost;
  if (size.num_problems > 1) {
    base = fit_base(parts, rule, *pilots, kSharedStream);
    before += base.cost;
  }
  const auto pilots_count = static_cast<double>(size.num_problems);
  // Few pilots say little of an average. As if fits differed by their own mean cost, half of the
  // average's standard error comes on top.
  if (size.num_problems > 1)
    budget.base_cost = static_cast<int64_t>(static_cast<double>(base.cost.densities) /
                                            pilots_count * (1 + 0.5 / std::sqrt(pilots_count)));
  if (base.partition)
    budget.num_anneals *= static_cast<double>(base.partition->num_parts()) / pilots_count;
  const CentredProblem centre = centred(parts, *pilots, base, forces, kSharedStream);
  before += centre.cost;
  at::Generator rng = stream_of(parts, target, Purpose::kPilot, kSharedStream);
  const BudgetParts budget_parts{*parts.path, *parts.transition,
                                 [&](int64_t steps) { return parts.make_rule(steps); },
                                 parts.pilot};
  const BudgetedPlan found =
      plan_within(budget, size, centre.problem, spent + before, budget_parts, rng);
  return {found.plan, before + found.cost};
}

}  // namespace crais
