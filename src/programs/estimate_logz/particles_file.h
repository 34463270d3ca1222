// Final particles in a file: an array for NumPy, or lines.
#pragma once

#include <string>

#include "core/target.h"
#include "evaluation/summary.h"
#include "programs/estimate_logz/settings.h"

namespace crais {

/// Throws Error kArgument unless the name ends in .npy or .csv.
void check_particles_file(const std::string& name);

/// "u11.npy: 10 problems x 1,024 particles x 3 numbers, 240 KiB": what will be written.
std::string particles_size(const LogzSettings& settings, const Target& target);

/// Writes the particles that the run has kept, whole or not at all. FILE.npy: float64 [P,K,D+1],
/// the coordinates z and the log-weight (nats; log_mean_exp over a problem's estimates log Z, so
/// weights of all problems are on one scale). FILE.csv: problem, particle, z1, ..., zD, log_weight,
/// a line a particle. Resampled: systematically within each problem, without the last column.
/// Throws Error kCannotCreate, kIo.
void write_particles(const LogzSettings& settings, const RunResults& results);

}  // namespace crais
