// How to spend a given number of evaluations: temperatures against chains.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "core/problem.h"
#include "samplers/plan.h"

namespace crais {

struct Budget {
  double evaluations = 0;    // of each problem, all told: its base, its share of pilots, estimating
  int64_t num_problems = 0;  // that share the pilots
  double num_anneals = 1;    // of one estimate; a problem of several parts has as many more
  int64_t base_cost = 0;     // of fitting one problem's base
  int64_t num_chains = 8;    // of one anneal
};

/// What pilots may cost, and their length.
struct PilotSize {
  int64_t num_problems = 0;
  int64_t num_particles = 0;
  int64_t steps = 0;
};

/// As much of a pilot as a twentieth of the budget allows, and at most `most_problems` problems.
/// `move_cost` is that of one transition.
/// Throws BudgetError, saying what the least budget is, if there is room for none.
PilotSize pilot_size(const Budget& budget, int64_t move_cost, int64_t most_problems);

/// How chains move and what tunes them, for plans of any length.
struct BudgetParts {
  const Path& path;
  const Transition& transition;
  std::function<std::unique_ptr<ScheduleRule>(int64_t steps)> make_rule;
  PilotOptions pilot;  // but for the number of particles, which is the pilot's size's
};

/// A plan and what its pilots cost.
struct BudgetedPlan {
  Plan plan;
  Cost cost;  // of the pilots; the budget has room for it
};

/// Tunes one plan and stretches it to the greatest length that the rest of the budget buys for
/// `budget.num_chains` chains. The bias of an estimate is about as large for many short chains, but
/// long ones come back from tails, and cross from one part of the mass to another.
/// @param problem  `size.num_problems` pilot problems.
/// @param spent    before, in all: the pilot problems' bases and centres.
/// Throws BudgetError if pilots have used up the budget, ScheduleError as the schedule does.
BudgetedPlan plan_within(const Budget& budget, const PilotSize& size, const Problem& problem,
                         const Cost& spent, const BudgetParts& parts, at::Generator& rng);

}  // namespace crais
