// Many chains, a block of them at a time: memory that does not grow with their number.
#pragma once

#include <cstdint>

#include "samplers/plan.h"

namespace crais {

/// Chains of each problem that are annealed at once, so that a tensor [P,K,D] holds about a million
/// numbers. A function of the shape alone: results depend on it, and on nothing that is measured.
int64_t chains_per_block(int64_t num_problems, int64_t dim);

/// Chains of each problem that draw from one random stream: more chains are more streams, and those
/// that are there stay as they are. A multiple of 16 that makes about 32,768 numbers, enough to be
/// annealed together at little cost. A function of the shape alone.
int64_t chains_per_stream(int64_t num_problems, int64_t dim);

/// As `anneal` under a frozen plan, block after block. The chains of AIS know nothing of each
/// other; those of SMC do, and blocks are of whole problems, which takes a target that can
/// `select`. Of the particles of several blocks only `particles.e` is kept, with
/// `keep_particles`; else nothing.
AnnealResult anneal_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                              const Transition& transition, int64_t num_particles,
                              at::Generator& rng, const Resampling* resampling = nullptr,
                              bool keep_particles = false);

/// As `anneal_reverse` under a frozen plan.
AnnealResult anneal_reverse_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                                      const Transition& transition, int64_t num_particles,
                                      at::Generator& rng);

}  // namespace crais
