// The particles that a run has kept.
#pragma once

#include <optional>

#include "estimates/expectation.h"
#include "evaluation/run_problems.h"

namespace crais {

/// Those of the first method and repeat, problem after problem, float64 on the CPU. Nothing where a
/// chunk has none, as one that was read from a file.
///
/// Chunks may have different numbers of particles. A problem with fewer gets particles of weight
/// zero, and its other weights grow by as much: their mean stays.
std::optional<WeightedParticles> kept_particles(const RunResults& results);

}  // namespace crais
