#include "samplers/budget.h"

#include <algorithm>
#include <cmath>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kPilotChains = 16, kLeastPilotChains = 4;
constexpr int64_t kLeastSteps = 4, kLeastChains = 8;  // of the least budget
// Long chains see more than many do, and fewer would say nothing of their own error. Chains that
// share an exact draw do not average it away, whatever their number.
constexpr int64_t kFewestChains = 4, kFewestBoundingChains = 2;
constexpr int64_t kMostSteps = int64_t{1} << 20;  // a plan of more would fill the memory
constexpr double kPilotShare = 0.05;

/// The length of the run that tunes: in the middle of those tried.
int64_t tuning_steps(const PilotSize& size) { return size.steps[size.steps.size() / 2]; }

double cost_of(const PilotSize& size, const Budget& budget, int64_t move_cost) {
  const auto chain = [&](int64_t steps) { return static_cast<double>(1 + steps * move_cost); };
  double chains = chain(tuning_steps(size));
  for (const int64_t steps : size.steps) chains += chain(steps);
  return static_cast<double>(size.num_problems) *
         (static_cast<double>(budget.base_cost) + static_cast<double>(size.num_particles) * chains);
}

int64_t fewest_chains(const Budget& budget) {
  return budget.bounds_above ? kFewestBoundingChains : kFewestChains;
}

/// Evaluations of a problem that the budget leaves for annealing after pilots of `pilot_cost` in
/// all.
double rest_of(const Budget& budget, double pilot_cost) {
  return budget.evaluations - static_cast<double>(budget.base_cost) -
         pilot_cost / static_cast<double>(budget.num_problems);
}

/// Chains that the budget still buys after pilots of `pilot_cost` in all.
int64_t affordable(const Budget& budget, double pilot_cost, int64_t move_cost, int64_t steps) {
  return static_cast<int64_t>(rest_of(budget, pilot_cost) /
                              static_cast<double>(budget.num_anneals * (1 + steps * move_cost)));
}

/// As much of a pilot as a twentieth of the budget allows; it may be more than the budget.
PilotSize largest_pilot(const Budget& budget, int64_t move_cost, int64_t most_problems) {
  PilotSize size{std::min(most_problems, budget.num_problems), kPilotChains, {kLeastSteps}};
  const auto fits = [&](int64_t steps) {
    return affordable(budget, 0, move_cost, steps) >= fewest_chains(budget);
  };
  while (size.steps.back() < kMostSteps && fits(2 * size.steps.back()))
    size.steps.push_back(2 * size.steps.back());
  const double total = budget.evaluations * static_cast<double>(budget.num_problems);
  while (cost_of(size, budget, move_cost) > kPilotShare * total) {
    if (size.num_problems > 1)
      size.num_problems = (size.num_problems + 1) / 2;
    else if (size.num_particles > kLeastPilotChains)
      size.num_particles /= 2;
    else if (size.steps.size() > 1)
      size.steps.pop_back();
    else
      break;
  }
  return size;
}

}  // namespace

PilotSize pilot_size(const Budget& budget, int64_t move_cost, int64_t most_problems) {
  const auto leaves_enough = [&](const Budget& some, const PilotSize& size) {
    return affordable(some, cost_of(size, some, move_cost), move_cost, kLeastSteps) >= kLeastChains;
  };
  PilotSize size = largest_pilot(budget, move_cost, most_problems);
  if (leaves_enough(budget, size)) return size;
  // A larger budget takes larger pilots: look for one that has room for its own.
  Budget least = budget;
  PilotSize pilot = size;
  while (!leaves_enough(least, pilot)) {
    least.evaluations = std::ceil(
        static_cast<double>(budget.base_cost) +
        cost_of(pilot, least, move_cost) / static_cast<double>(budget.num_problems) +
        static_cast<double>(kLeastChains * budget.num_anneals * (1 + kLeastSteps * move_cost)));
    pilot = largest_pilot(least, move_cost, most_problems);
  }
  throw BudgetError(least.evaluations,
                    "`budget` " + shortest(budget.evaluations) + " is too small: the base takes " +
                        std::to_string(budget.base_cost) + " evaluations, and at least " +
                        shortest(least.evaluations) + " are needed in all");
}

at::Tensor predicted_bias(const at::Tensor& log_w_variance, int64_t num_particles) {
  return at::minimum(log_w_variance / 2,
                     at::expm1(log_w_variance) / (2.0 * static_cast<double>(num_particles)));
}

BudgetedPlan plan_within(const Budget& budget, const PilotSize& size, const Problem& problem,
                         const Cost& spent, const BudgetParts& parts, at::Generator& rng) {
  PilotOptions options = parts.pilot;
  options.num_particles = size.num_particles;
  options.interpolate = 0;
  const PilotRun tuned = run_pilot(problem, parts.path, *parts.make_rule(tuning_steps(size)),
                                   parts.transition, options, rng);
  BudgetedPlan best;
  best.cost = tuned.run.cost;
  std::vector<std::pair<Plan, at::Tensor>> tried;
  for (const int64_t steps : size.steps) {
    const Plan plan = interpolate(tuned.plan, steps);
    const AnnealResult run = anneal(problem, parts.path, plan, parts.transition, size.num_particles,
                                    rng, options.resampling);
    best.cost += run.cost;
    tried.emplace_back(plan, run.log_w.var(1, /*unbiased=*/true));
  }
  const auto pilot_cost = static_cast<double>(spent.densities + best.cost.densities);
  // Shortest first. Between predictions as close as their noise, longer annealing has lighter
  // tails.
  constexpr double kNoise = 1.25;
  double least = INFINITY;
  for (auto& [plan, variance] : tried) {
    const int64_t chains =
        affordable(budget, pilot_cost, parts.transition.evaluations_per_step(), plan.num_steps());
    if (chains < fewest_chains(budget)) continue;
    at::Tensor predicted = predicted_bias(variance, chains);
    if (budget.bounds_above) predicted = predicted + variance / 2;
    const double bias = predicted.mean().item<double>();
    best.candidates.push_back({plan.num_steps(), chains, bias});
    if (bias > kNoise * least) continue;
    least = std::min(least, bias);
    best.plan = plan;
    best.plan.num_particles = chains;
  }
  if (best.plan.num_particles == 0)
    throw BudgetError(NAN, "the base (" + std::to_string(budget.base_cost) +
                               " evaluations) and pilots have used up all " +
                               shortest(budget.evaluations) +
                               " of `budget`; allow more, or take a schedule of fewer steps");
  // Lengths double from one candidate to the next; the chains are as long as the budget lets them
  // be.
  const auto longest =
      static_cast<int64_t>(rest_of(budget, pilot_cost) /
                               static_cast<double>(budget.num_anneals * best.plan.num_particles) -
                           1) /
      parts.transition.evaluations_per_step();
  if (longest > best.plan.num_steps()) best.plan = interpolate(best.plan, longest);
  return best;
}

}  // namespace crais
