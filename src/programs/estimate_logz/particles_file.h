// A file of final particles: a NumPy array or CSV.
#pragma once

#include "evaluation/summary.h"
#include "programs/estimate_logz/settings.h"

namespace crais {

/// Checks the file before the run starts. Throws Error kArgument if no run can write the requested
/// file, kCannotCreate if its folder cannot be made.
void check_particles_file(const LogzSettings& settings);

/// Writes the particles of the run atomically. FILE.npy: float64 [P,K,D+1], the coordinates z and
/// the log-weight in nats. log_mean_exp over a problem estimates log Z, so weights of all problems
/// have one scale. FILE.csv: problem, particle, z1, ..., zD, log_weight, a line for each particle.
/// Resampled: systematically within each problem, without the last column. Throws Error
/// kCannotCreate, kIo.
void write_particles(const LogzSettings& settings, const RunResults& results);

}  // namespace crais
