// Witnesses of a density: do particles that settle under it go where its chains have not been, and
// what does a base that nobody has chosen find?
#pragma once

#include <cstdint>

#include "evaluation/chunk_result.h"
#include "evaluation/options.h"
#include "evaluation/parts.h"

namespace crais {

/// Particles and sweeps of a witness: what one costs is known beforehand.
constexpr int64_t kWitnesses = 256, kWitnessSweeps = 18;

/// `found`: forward particles of every replicate of `target`, with their weights; `problem`: its
/// parts. Some particles are resampled and settle under the density. Where they end at log
/// densities that the weighted ones hardly reach, chains from the base have missed a neck or a
/// tail. Cost: added to `cost`, that of settling, and a density of each settled and forward
/// particle.
SettledShare settled_share(const EstimatorParts& parts, const Target& target,
                           const Problem& problem, const Plan& plan, const WeightedParticles& found,
                           uint64_t stream, Cost& cost);

/// True for annealed estimates of replicates whose base is not the one that would look.
bool wants_second_opinion(const EstimateOptions& options, const Target& target,
                          const std::string& base);

/// A few estimates by the base mixture, which neither the base that was asked for nor its chains
/// know of: a lower bound on average. Cost: added to `cost`, some 4 x 10^5 evaluations.
Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost);

}  // namespace crais
