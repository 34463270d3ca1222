// How to spend a given number of evaluations: temperatures against chains.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/problem.h"
#include "samplers/plan.h"

namespace crais {

struct Budget {
  double evaluations = 0;    // of each problem, all told: its base, its share of pilots, estimating
  int64_t num_problems = 0;  // that share the pilots
  int64_t num_anneals = 1;   // of one estimate
  int64_t base_cost = 0;     // of fitting one problem's base
  bool bounds_above = false;  // chains run back as well, all from one exact draw
};

/// What an estimate of `num_particles` chains with `steps` temperatures would be like.
struct Candidate {
  int64_t steps = 0;
  int64_t num_particles = 0;
  double predicted_bias = 0;  // nats, mean over the pilot problems; of both bounds where asked for
};

/// What pilots may cost, and which lengths they try.
struct PilotSize {
  int64_t num_problems = 0;
  int64_t num_particles = 0;
  std::vector<int64_t> steps;  // ascending
};

/// As much of a pilot as a twentieth of the budget allows, and at most `most_problems` problems.
/// `move_cost` is that of one transition.
/// Throws BudgetError, saying what the least budget is, if there is room for none.
PilotSize pilot_size(const Budget& budget, int64_t move_cost, int64_t most_problems);

/// E[log mean of K weights] - log Z, its size in nats, where log w has variance s2: for lognormal
/// weights expm1(s2) / (2 K), and never more than the gap s2 / 2 of a single chain.
at::Tensor predicted_bias(const at::Tensor& log_w_variance, int64_t num_particles);

/// How chains move and what tunes them, for plans of any length.
struct BudgetParts {
  const Path& path;
  const Transition& transition;
  std::function<std::unique_ptr<ScheduleRule>(int64_t steps)> make_rule;
  PilotOptions pilot;  // but for the number of particles, which is the pilot's size's
};

struct BudgetedPlan {
  Plan plan;
  std::vector<Candidate> candidates;  // those that were looked at
  Cost cost;                          // of the pilots; the budget has room for it
};

/// Tunes one plan, stretches it to each length, measures the log-weights' variance on fresh pilot
/// chains, and freezes the length for which as many chains as the rest of the budget buys have the
/// smallest predicted bias (the longest of those within a quarter of it). There are at least four
/// chains, and they are then as long as the budget lets them be. An upper bound adds the s2 / 2 of
/// a single chain, and may leave two: chains that share an exact draw do not average it away.
/// @param problem  `size.num_problems` pilot problems.
/// @param spent    before, in all: the pilot problems' bases and centres.
/// Throws BudgetError if pilots have used up the budget, ScheduleError as the schedule does.
BudgetedPlan plan_within(const Budget& budget, const PilotSize& size, const Problem& problem,
                         const Cost& spent, const BudgetParts& parts, at::Generator& rng);

}  // namespace crais
