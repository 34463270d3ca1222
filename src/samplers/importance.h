// Plain importance sampling from the base: for IWAE, the ELBO, and plans without moves.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/problem.h"

namespace crais {

/// Log-weights of independent particles and their cost.
struct LogWeights {
  at::Tensor log_w;  // [P,K] float64, nats, of gamma itself (the centre is added back)
  Cost cost;
  at::Tensor e = {};  // [P,K,D]: the draws, if they are kept
};

/// log gamma - log q0 at K draws of the base. log_mean_exp of a row estimates log Z (IWAE, Burda et
/// al. 2016); its mean is the ELBO. Draws come in blocks, so the memory does not grow with K,
/// unless they are kept. Cost: K densities a problem.
LogWeights importance_log_weights(const Problem& problem, int64_t num_particles, at::Generator& rng,
                                  bool keep_draws = false);

}  // namespace crais
