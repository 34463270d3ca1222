// Division of a given number of evaluations between temperatures and chains.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "core/problem.h"
#include "samplers/plan.h"

namespace crais {

struct Budget {
  double evaluations = 0;    // total for each problem: its base, its share of pilots, the estimate
  int64_t num_problems = 0;  // problems that share the cost of the pilots
  double num_anneals = 1;    // anneals of one estimate; each part of a problem needs its own
  int64_t base_cost = 0;     // cost of fitting the base of one problem
  int64_t num_chains = 8;    // chains of one anneal
};

/// The cost limit and the length of pilots.
struct PilotSize {
  int64_t num_problems = 0;
  int64_t num_particles = 0;
  int64_t steps = 0;
};

/// A pilot that costs at most a twentieth of the budget and has at most `most_problems` problems.
/// `move_cost` is the cost of one transition. Throws BudgetError that names the least budget if
/// there is no room for a pilot.
PilotSize pilot_size(const Budget& budget, int64_t move_cost, int64_t most_problems);

/// The transition and the tuning of a plan, for plans of any length.
struct BudgetParts {
  const Path& path;
  const Transition& transition;
  std::function<std::unique_ptr<ScheduleRule>(int64_t steps)> make_rule;
  PilotOptions pilot;  // the number of particles comes from the size of the pilot
};

/// A plan and the cost of its pilots.
struct BudgetedPlan {
  Plan plan;
  Cost cost;  // of the pilots; within the budget
};

/// Tunes one plan and stretches it to the greatest length that the rest of the budget pays for with
/// `budget.num_chains` chains. The bias of many short chains is about as large, but long chains
/// return from tails and cross from one part of the mass to another.
/// @param problem  `size.num_problems` pilot problems.
/// @param spent    earlier cost in all: bases and centres of the pilot problems.
/// Throws BudgetError if the pilots have used up the budget, and the schedule's ScheduleError.
BudgetedPlan plan_within(const Budget& budget, const PilotSize& size, const Problem& problem,
                         const Cost& spent, const BudgetParts& parts, at::Generator& rng);

}  // namespace crais
