#include "evaluation/plans.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "evaluation/witness.h"
#include "samplers/budget.h"
#include "samplers/settling.h"

namespace crais {
namespace {

/// The number of chains under a budget. A few long chains are best, but fewer would not show their
/// own error, and resampling needs more particles. For bounds, the chains of both directions show
/// their distance.
int64_t num_chains(const EstimatorParts& parts) {
  constexpr int64_t kChains = 8, kBounding = 2, kResampled = 32;
  if (parts.resampling) return kResampled;
  return parts.needs_exact_draws() ? kBounding : kChains;
}

constexpr int64_t kFewChains = 16, kPilotChains = 16, kFewestSteps = 32, kMostSteps = 300;

}  // namespace

TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent) {
  // The cost of the first problem's base determines the number of pilots. A fit of many problems
  // continues until the last one has arrived.
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
  // A mean over few pilots is uncertain. Half of its standard error is added, as if the standard
  // deviation of the fits' costs were their mean.
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
bool plans_by_chunk(const Target& target, const std::string& base) {
  return target.is_replicated() && base.rfind("mixture", 0) == 0;
}

TunedPlan replicated_plan(const EstimatorParts& parts, const Problem& problem, const Cost& base,
                          uint64_t stream) {
  const std::optional<Partition>& partition = problem.partition();
  const int64_t problems = partition ? partition->num_problems : problem.num_problems();
  const int64_t each = problem.num_problems() / problems;  // parts of a replicate
  const at::TensorOptions rows = problem.base().options().dtype(at::kLong);
  const Problem one = problem.select(at::arange(each, rows));
  int64_t steps = parts.options.steps, chains = parts.options.chains;
  if (parts.options.budget) {
    const int64_t move = parts.transition->evaluations_per_step();
    const auto spent = static_cast<double>(base.densities) / static_cast<double>(problems);
    // A witness settles particles, and asks for the density of every chain's last one.
    const int64_t witness =
        parts.options.witness
            ? kWitnesses * (settling_evaluations(*parts.transition, kWitnessSweeps) + 1)
            : 0;
    const int64_t last = parts.options.witness ? 1 : 0;
    const double left =
        std::max(0.0, *parts.options.budget - spent -
                          static_cast<double>(witness) / static_cast<double>(problems)) /
        static_cast<double>(each * move);
    const double pilots = static_cast<double>(kPilotChains) / static_cast<double>(problems);
    const auto affordable = static_cast<int64_t>(left / (kFewChains + pilots)) - 1 - last;
    steps = std::clamp(affordable, kFewestSteps, kMostSteps);
    chains = std::max(kFewChains,
                      static_cast<int64_t>(left / static_cast<double>(steps + 1 + last) - pilots));
  }
  PilotOptions options = parts.pilot;
  if (parts.options.budget) options.interpolate = 0;  // it has chosen the steps
  options.num_particles = std::max(kPilotChains, parts.options.pilot_chains.value_or(0));
  options.shared = false;
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, stream);
  PilotRun pilot =
      run_pilot(one, *parts.path, *parts.make_rule(steps), *parts.transition, options, rng);
  TunedPlan tuned{select(pilot.plan, at::arange(each, rows).repeat({problems})), pilot.run.cost};
  tuned.plan.num_particles = chains;
  return tuned;
}

}  // namespace crais
