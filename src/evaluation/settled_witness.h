// Do particles that settle under a density go where its chains have not been?
#pragma once

#include <cstdint>

#include "evaluation/chunk_result.h"
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

}  // namespace crais
