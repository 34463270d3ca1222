// Plans within a budget, and plans of replicates that share a base of several parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluation/chunk_result.h"
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
bool plans_by_chunk(const EstimateOptions& options, const Target& target, const std::string& base);

/// Temperatures and step sizes for each part of the base, tuned on one replicate. A `budget` pays
/// first for the chunk's pilots and base. The rest pays for as many temperatures as a few
/// chains of each part allow, at most kMostSteps, then for more chains. Cost: that of the pilot.
TunedPlan replicated_plan(const EstimatorParts& parts, const Problem& problem, const Cost& base,
                          uint64_t stream);

/// What rounds have come to.
struct Rounds {
  std::vector<Round> rounds;
  std::optional<ChunkRun> last;   // estimates of the last round
  std::optional<double> barrier;  // see ChunkResult
  Cost cost;                      // of rounds and pilots
  bool is_short = false;          // `max_evaluations` left less than was wanted
};

/// The plan that brings the error of the mean over the replicates of `problem` below `error` nats.
/// The first round draws from the base. If its weights say that the base covers the density, the
/// plan has no moves: importance sampling. Else rounds of doubling length are pilots: each has
/// particles and a plan of its own. The error of a round predicts the length of the estimate. If
/// that is at most eight rounds, it is frozen, and the round's plan is stretched to it; the
/// estimate is of fresh particles. It takes at least a third of all evaluations, because a fit pays
/// off by a longer estimate. `spent` counts towards
/// `max_evaluations`: evaluations of a replicate so far. `rounds` has what was done also where an
/// Error is thrown.
/// Cost: in `rounds`.
Plan plan_by_rounds(const EstimatorParts& parts, const Problem& problem, double spent,
                    uint64_t stream, Rounds& rounds);

}  // namespace crais
