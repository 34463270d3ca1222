#include "samplers/budget.h"

#include <algorithm>
#include <cmath>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kPilotChains = 16, kLeastPilotChains = 4, kLongestPilot = 128;
constexpr int64_t kLeastSteps = 4;
constexpr int64_t kMostSteps = int64_t{1} << 20;  // a longer plan would fill the memory
constexpr double kPilotShare = 0.05;

double cost_of(const PilotSize& size, const Budget& budget, int64_t move_cost) {
  const int64_t chains = size.num_particles * (1 + size.steps * move_cost);
  return static_cast<double>(size.num_problems * (budget.base_cost + chains));
}

/// The temperatures of every chain that the budget pays for after pilots of `pilot_cost` in all.
int64_t affordable_steps(const Budget& budget, double pilot_cost, int64_t move_cost) {
  const double rest = budget.evaluations - static_cast<double>(budget.base_cost) -
                      pilot_cost / static_cast<double>(budget.num_problems);
  const double chain = rest / (budget.num_anneals * static_cast<double>(budget.num_chains));
  return std::min(kMostSteps,
                  static_cast<int64_t>(std::max(0.0, chain - 1) / static_cast<double>(move_cost)));
}

/// The largest pilot that costs at most a twentieth of the budget. The smallest pilot may cost
/// more.
PilotSize largest_pilot(const Budget& budget, int64_t move_cost, int64_t most_problems) {
  PilotSize size{std::min(most_problems, budget.num_problems), kPilotChains,
                 std::clamp(affordable_steps(budget, 0, move_cost), kLeastSteps, kLongestPilot)};
  const double allowed =
      kPilotShare * budget.evaluations * static_cast<double>(budget.num_problems);
  while (cost_of(size, budget, move_cost) > allowed) {
    if (size.num_problems > 1)
      size.num_problems = (size.num_problems + 1) / 2;
    else if (size.num_particles > kLeastPilotChains)
      size.num_particles /= 2;
    else if (size.steps > kLeastSteps)
      size.steps = std::max(kLeastSteps, size.steps / 2);
    else
      break;
  }
  return size;
}

}  // namespace

PilotSize pilot_size(const Budget& budget, int64_t move_cost, int64_t most_problems) {
  const auto leaves_enough = [&](const Budget& candidate, const PilotSize& size) {
    return affordable_steps(candidate, cost_of(size, candidate, move_cost), move_cost) >=
           kLeastSteps;
  };
  PilotSize size = largest_pilot(budget, move_cost, most_problems);
  if (leaves_enough(budget, size)) return size;
  // A larger budget has larger pilots: search for a budget that pays for its own pilots.
  Budget least = budget;
  PilotSize pilot = size;
  while (!leaves_enough(least, pilot)) {
    least.evaluations =
        std::ceil(static_cast<double>(budget.base_cost) +
                  cost_of(pilot, least, move_cost) / static_cast<double>(budget.num_problems) +
                  budget.num_anneals *
                      static_cast<double>(budget.num_chains * (1 + kLeastSteps * move_cost)));
    pilot = largest_pilot(least, move_cost, most_problems);
  }
  throw BudgetError(least.evaluations, "`budget` " + shortest(budget.evaluations) +
                                           " is too small: the base takes up to " +
                                           std::to_string(budget.base_cost) +
                                           " evaluations, and at least " +
                                           shortest(least.evaluations) + " are needed in all");
}

BudgetedPlan plan_within(const Budget& budget, const PilotSize& size, const Problem& problem,
                         const Cost& spent, const BudgetParts& parts, at::Generator& rng) {
  PilotOptions options = parts.pilot;
  options.num_particles = size.num_particles;
  options.interpolate = 0;
  PilotRun tuned =
      run_pilot(problem, parts.path, *parts.make_rule(size.steps), parts.transition, options, rng);
  const auto pilot_cost = static_cast<double>(spent.densities + tuned.run.cost.densities);
  const int64_t steps =
      affordable_steps(budget, pilot_cost, parts.transition.evaluations_per_step());
  if (steps < 1)
    throw BudgetError(NAN, "the base (up to " + std::to_string(budget.base_cost) +
                               " evaluations) and pilots have used up all " +
                               shortest(budget.evaluations) +
                               " of `budget`; allow more, or take a schedule of fewer steps");
  BudgetedPlan found{interpolate(tuned.plan, steps), tuned.run.cost};
  found.plan.num_particles = budget.num_chains;
  return found;
}

}  // namespace crais
