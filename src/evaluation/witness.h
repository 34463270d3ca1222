// Witnesses of a density: whether settled particles reach places where chains have not been, and
// what another base estimates.
#pragma once

#include <cstdint>

#include "evaluation/chunk_result.h"
#include "evaluation/options.h"
#include "evaluation/parts.h"

namespace crais {

/// The particles of a witness, and their sweeps in `dim` dimensions: its cost is known in advance.
constexpr int64_t num_witnesses(int64_t dim) { return dim > kManyDims ? 128 : 256; }
/// The most forward particles that it looks at.
constexpr int64_t kMostForward = 1 << 14;
constexpr int64_t witness_sweeps(int64_t dim) { return dim > kManyDims ? 6 : 18; }

/// False for importance sampling from one normal, whose weights tell it all.
bool needs_witness(bool has_moves, const Problem& problem);

/// `found` holds forward particles of every replicate, in the coordinates of `problem` and with
/// their weights; `problem` has the parts. Some particles are resampled and settle under the
/// density. If they end where the density is larger beside the base than at the weighted particles,
/// chains from the base have missed a neck or a tail. Cost, added to `cost`: that of settling, and
/// one density for each settled and each forward particle, kMostForward at most.
SettledShare settled_share(const EstimatorParts& parts, const Problem& problem, const Plan& plan,
                           const WeightedParticles& found, uint64_t stream, Cost& cost);

/// True for annealed estimates of replicates whose base differs from that of the second opinion.
bool wants_second_opinion(const EstimateOptions& options, const Target& target,
                          const std::string& base);

/// A few estimates by the base mixture, independent of the requested base and its chains: a lower
/// bound on average. Cost, added to `cost`: about 4 x 10^5 evaluations.
Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost);

}  // namespace crais
