// Choices made by pilots: the base `auto`, and the type of the forces of an anneal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/parts.h"

namespace crais {

struct BaseChoice {
  std::string name;          // in BaseRegistry
  std::optional<Plan> plan;  // made by its pilots
  Cost cost;                 // of fitting and trying all candidates
};

/// Chooses the first of base_candidates (usually Laplace), unless the estimates of another
/// candidate on pilots are clearly higher (by the 95% interval of the paired difference). Every
/// estimate is a lower bound on average, so the highest is the best. If nothing is annealed: the
/// encoder if there is one, else Laplace.
///
/// A candidate whose schedule cannot reach the target (ScheduleError) is skipped. If none is left,
/// the last error is thrown. `num_problems` problems will be estimated in all. Under a budget,
/// pilots take a twentieth of it; if that is too little, the first candidate is chosen without a
/// trial. Cost: for each candidate, its base, its pilot, and as many chains as an estimate has.
BaseChoice choose_base(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                       std::optional<at::ScalarType> forces = {});

/// Candidates in order of preference: a later one must be clearly better to be chosen. `modes` and
/// the prior where there may be several modes; else `laplace`, `modes`, an encoder if there is one,
/// and the prior.
/// - A fit is 1.1 times as wide for chains of at least 64 temperatures, which have time to return
/// from the tails. Under a budget, the number of temperatures is not yet known.
/// - Under a budget, a fit costs at most two fifths of it; a cheaper fit replaces a costlier one.
/// - `variational` refines a fit if that costs at most a fifth of the estimate.
std::vector<std::string> base_candidates(const EstimatorParts& parts, const Target& target,
                                         int64_t num_problems);

/// The value of `force_dtype` for problems such as `pilots`: at::kBFloat16, or nothing for forces
/// as exact as values.
///
/// `auto` chooses bfloat16 if the target says that it is faster and if moves of pilots are accepted
/// as often as with exact forces: with the same particles and random numbers, at beta = 1, mean
/// acceptance may lose at most 0.02 at each of some step sizes. The choice never affects the
/// correctness of estimates: acceptance uses the exact density, so any force is valid. Kernels with
/// cheap forces compute that density in another way, with an error that depends on the weights: at
/// these particles the error must be at most 0.001 nats on average, for a log-density of a thousand
/// or less.
///
/// Throws Error kArgument if `bfloat16` is asked for and the target has no such forces.
/// @param cost  increased by the cost of the comparison: with each type of force 1 + 7 L
/// evaluations of 4 particles a pilot. If all bases would take more than 2,000 evaluations (without
/// an encoder), the comparison uses fewer pilots with more particles each.
std::optional<at::ScalarType> choose_forces(const EstimatorParts& parts, const Target& pilots,
                                            Cost& cost);

}  // namespace crais
