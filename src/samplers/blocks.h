// Many chains in blocks: the memory does not grow with their number.
#pragma once

#include <cstdint>

#include "samplers/plan.h"

namespace crais {

/// The chains of each problem that are annealed at once: a tensor [P,K,D] then holds about a
/// million numbers. A function of the shape alone, because results depend on it.
int64_t chains_per_block(int64_t num_problems, int64_t dim);

/// The chains of each problem that draw from one random stream. More chains use more streams, which
/// leaves the first chains unchanged. A multiple of 16 with about 32,768 numbers: enough for
/// efficient annealing. A function of the shape alone.
int64_t chains_per_stream(int64_t num_problems, int64_t dim);

/// `anneal` under a frozen plan, block after block. Chains of AIS are independent. Chains of SMC
/// interact, so their blocks hold whole problems, which requires a target that can `select`. If
/// there are several blocks, no particles are kept, except `particles.e` with `keep_particles`.
AnnealResult anneal_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                              const Transition& transition, int64_t num_particles,
                              at::Generator& rng, const Resampling* resampling = nullptr,
                              bool keep_particles = false);

/// `anneal_reverse` under a frozen plan, block after block: from draws z [P,num_particles,D], or
/// from exact draws of the target if z is undefined.
AnnealResult anneal_reverse_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                                      const Transition& transition, int64_t num_particles,
                                      at::Generator& rng, const at::Tensor& z = {});

}  // namespace crais
