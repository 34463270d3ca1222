// Final particles in a file: an array for NumPy, or lines.
#pragma once

#include "evaluation/summary.h"
#include "programs/estimate_logz/settings.h"

namespace crais {

/// Before the work, lest it be in vain. Throws Error kArgument where the settings ask for a file
/// that no run can write, kCannotCreate where its folder cannot be made.
void check_particles_file(const LogzSettings& settings);

/// Writes the particles that the run has kept, whole or not at all. FILE.npy: float64 [P,K,D+1],
/// the coordinates z and the log-weight (nats; log_mean_exp over a problem's estimates log Z, so
/// weights of all problems are on one scale). FILE.csv: problem, particle, z1, ..., zD, log_weight,
/// a line a particle. Resampled: systematically within each problem, without the last column.
/// Throws Error kCannotCreate, kIo.
void write_particles(const LogzSettings& settings, const RunResults& results);

}  // namespace crais
