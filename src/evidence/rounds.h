// Plans of replicates that share a base of several parts, and witnesses of what their chains miss.
#pragma once

#include <cstdint>

#include "evaluation/driver.h"

namespace crais {

/// Temperatures and step sizes for each part of the base, tuned on one replicate. A `budget` pays
/// first for the base and pilots, which `num_problems` replicates share. The rest pays for as many
/// temperatures as a few chains of each part allow, at most kMostSteps, then for more chains.
/// Cost: added to `state.tuning`.
void plan_of_replicates(const EstimatorParts& parts, const Problem& problem, int64_t num_problems,
                        TunedState& state);

/// The plan that brings the error of the mean over the replicates of `problem` below `error` nats.
/// The first round draws from the base. If its weights say that the base covers the density, the
/// plan has no moves: importance sampling. Else rounds of doubling length are pilots, each with a
/// plan and particles of its own. A round's error predicts the length of the estimate. If that is
/// at most eight rounds, it is frozen, and the round's plan is stretched to it, for new particles.
/// It takes at least a third of all evaluations, because a fit pays off by a longer estimate. What
/// `num_problems` replicates share, the fit and the rounds, counts towards `max_evaluations` in
/// that proportion. Where a target throws Error kInterrupted after a round, `state.is_cut` is true,
/// and that round, flagged, is the result. Cost: added to `state.tuning`.
void plan_by_rounds(const EstimatorParts& parts, const Problem& problem, int64_t num_problems,
                    TunedState& state);

/// The particles of a witness, and their sweeps in `dim` dimensions: its cost is known in advance.
constexpr int64_t num_witnesses(int64_t dim) { return dim > kManyDims ? 128 : 256; }
/// The most forward particles that it looks at.
constexpr int64_t kMostForward = 1 << 14;
constexpr int64_t witness_sweeps(int64_t dim) { return dim > kManyDims ? 6 : 18; }

/// False for importance sampling from one normal, whose weights tell it all.
bool needs_witness(bool has_moves, const Problem& problem);

/// `found` holds weighted forward particles of every replicate, in the coordinates of `problem`,
/// which has the parts. Some are resampled and settle under the density. If they end where it is
/// larger relative to the base than at the weighted ones, chains have missed a neck or a tail.
/// Cost: added, settling and a density of each settled and forward particle, kMostForward at most.
SettledShare settled_share(const EstimatorParts& parts, const Problem& problem, const Plan& plan,
                           const WeightedParticles& found, uint64_t stream, Cost& cost);

/// A few estimates by the base mixture, independent of the requested base and its chains: a lower
/// bound on average. Cost, added to `cost`: about 4 x 10^5 evaluations.
Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost);

}  // namespace crais
