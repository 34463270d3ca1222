// Do particles that settle under a density go where its chains have not been?
#pragma once

#include <cstdint>

#include "evaluation/chunk_result.h"
#include "evaluation/parts.h"

namespace crais {

/// Particles and sweeps of a witness: what one costs is known beforehand.
constexpr int64_t kWitnesses = 256, kWitnessSweeps = 18, kWitnessEvaluations = 11 * kWitnessSweeps;

/// `found`: forward particles of every replicate, with their weights. Some are resampled and settle
/// under the density. Where they end at log densities that the weighted ones hardly reach, chains
/// from the base have missed a neck or a tail. Cost: added to `cost`, kWitnesses
/// kWitnessEvaluations, and a density of each forward particle.
SettledShare settled_share(const EstimatorParts& parts, const Problem& problem, const Plan& plan,
                           const WeightedParticles& found, uint64_t stream, Cost& cost);

}  // namespace crais
