#include "samplers/budget.h"

#include <algorithm>
#include <cmath>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kLeastSteps = 4, kLeastChains = 8, kPilotChains = 16, kLeastPilotChains = 4;
constexpr double kPilotShare = 0.1;

/// The length of the run that tunes: in the middle of those tried.
int64_t tuning_steps(const PilotSize& size) { return size.steps[size.steps.size() / 2]; }

double cost_of(const PilotSize& size, int64_t base_cost, int64_t move_cost) {
  const auto chain = [&](int64_t steps) { return static_cast<double>(1 + steps * move_cost); };
  double chains = chain(tuning_steps(size));
  for (const int64_t steps : size.steps) chains += chain(steps);
  return static_cast<double>(size.num_problems) *
         (static_cast<double>(base_cost) + static_cast<double>(size.num_particles) * chains);
}

/// Chains that the budget still buys after pilots of `pilot_cost` in all.
int64_t affordable(const Budget& budget, double pilot_cost, int64_t base_cost, int64_t move_cost,
                   int64_t steps) {
  const double rest = budget.evaluations - static_cast<double>(base_cost) -
                      pilot_cost / static_cast<double>(budget.num_problems);
  return static_cast<int64_t>(rest /
                              static_cast<double>(budget.num_anneals * (1 + steps * move_cost)));
}

}  // namespace

PilotSize pilot_size(const Budget& budget, int64_t base_cost, int64_t move_cost,
                     int64_t most_problems) {
  PilotSize size{std::min(most_problems, budget.num_problems), kPilotChains, {kLeastSteps}};
  const auto fits = [&](int64_t steps) {
    return affordable(budget, 0, base_cost, move_cost, steps) >= kLeastChains;
  };
  while (fits(2 * size.steps.back())) size.steps.push_back(2 * size.steps.back());
  const double total = budget.evaluations * static_cast<double>(budget.num_problems);
  const auto cost = [&] { return cost_of(size, base_cost, move_cost); };
  while (cost() > kPilotShare * total) {
    if (size.num_problems > 1)
      size.num_problems = (size.num_problems + 1) / 2;
    else if (size.num_particles > kLeastPilotChains)
      size.num_particles /= 2;
    else if (size.steps.size() > 1)
      size.steps.pop_back();
    else
      break;
  }
  if (affordable(budget, cost(), base_cost, move_cost, kLeastSteps) < kLeastChains) {
    const double least =
        static_cast<double>(base_cost) + cost() / static_cast<double>(budget.num_problems) +
        static_cast<double>(kLeastChains * budget.num_anneals * (1 + kLeastSteps * move_cost));
    throw usage_error("--budget " + shortest(budget.evaluations) +
                      " is too small: the base takes " + std::to_string(base_cost) +
                      " evaluations, and at least " + shortest(std::ceil(least)) +
                      " are needed in all");
  }
  return size;
}

at::Tensor predicted_bias(const at::Tensor& log_w_variance, int64_t num_particles) {
  return at::minimum(log_w_variance / 2,
                     at::expm1(log_w_variance) / (2.0 * static_cast<double>(num_particles)));
}

Plan plan_within(const Budget& budget, const PilotSize& size, const Cost& spent, int64_t base_cost,
                 const Problem& problem, const Path& path,
                 const std::function<std::unique_ptr<ScheduleRule>(int64_t steps)>& make_rule,
                 const Transition& transition, const PilotOptions& options, at::Generator& rng,
                 std::vector<Candidate>* candidates) {
  PilotOptions pilot_options = options;
  pilot_options.num_particles = size.num_particles;
  pilot_options.interpolate = 0;
  const Plan tuned =
      tune(problem, path, *make_rule(tuning_steps(size)), transition, pilot_options, rng);
  std::vector<std::pair<Plan, at::Tensor>> tried;
  for (const int64_t steps : size.steps) {
    const Plan plan = interpolate(tuned, steps);
    const AnnealResult run =
        anneal(problem, path, plan, transition, size.num_particles, rng, options.resampling);
    tried.emplace_back(plan, run.log_w.var(1, /*unbiased=*/true));
  }
  const auto pilot_cost = static_cast<double>(spent.densities + problem.cost().densities);
  // Shortest first. Between predictions as close as their noise, longer annealing has lighter
  // tails.
  constexpr double kNoise = 1.25;
  Plan best;
  double least = INFINITY;
  for (auto& [plan, variance] : tried) {
    const int64_t chains = affordable(budget, pilot_cost, base_cost,
                                      transition.evaluations_per_step(), plan.num_steps());
    if (chains < 2) continue;
    const double bias = predicted_bias(variance, chains).mean().item<double>();
    if (candidates) candidates->push_back({plan.num_steps(), chains, bias});
    if (bias > kNoise * least) continue;
    least = std::min(least, bias);
    best = plan;
    best.num_particles = chains;
  }
  if (best.num_particles == 0)
    throw usage_error("--budget: pilots have used up all " + shortest(budget.evaluations) +
                      " evaluations of a problem; allow more, or take a schedule of fewer steps");
  return best;
}

}  // namespace crais
