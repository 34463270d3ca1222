// Plain importance sampling from the base: what IWAE and the ELBO are averages of.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/problem.h"

namespace crais {

/// Log-weights of independent particles, and what they cost.
struct LogWeights {
  at::Tensor log_w;  // [P,K] float64, nats, of gamma (no centre is left in them)
  Cost cost;
};

/// log gamma - log q0 of K draws of the base. log_mean_exp of a row estimates log Z
/// (IWAE, Burda et al. 2016), its mean is the ELBO. Drawn in blocks, so that memory does not grow
/// with K. Cost: K densities per problem.
LogWeights importance_log_weights(const Problem& problem, int64_t num_particles,
                                  at::Generator& rng);

}  // namespace crais
