/// @file
/// Transitions that leave the annealed density invariant.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/path.h"
#include "core/problem.h"
#include "core/registry.h"

namespace crais {

/// Particles after a move.
struct Moved {
  Particles particles;
  at::Tensor accept_prob;    // [P,K] float64, min(1, ratio); 0 for a non-finite proposal
  at::Tensor num_nonfinite;  // [] int64: proposals rejected for a density of NaN or +inf
};

/// A Markov kernel with gamma_beta as its invariant density, in whitened coordinates (unit mass).
///
///     auto hmc =
///         crais::TransitionRegistry::instance().make("kernel", "ghmc:0.8", {.num_leapfrog = 2});
///     crais::Moved moved = hmc->step(problem, *path, particles, beta, step_size, rng);
class Transition {
 public:
  virtual ~Transition() = default;

  /// One move of every particle at beta [P], with a step size per problem [P].
  /// Cost: evaluations_per_step() per particle.
  virtual Moved step(const Problem& problem, const Path& path, const Particles& particles,
                     const at::Tensor& beta, const at::Tensor& step_size,
                     at::Generator& rng) const = 0;

  virtual int64_t evaluations_per_step() const = 0;
  /// The acceptance rate at which the kernel moves farthest for each evaluation.
  virtual double target_acceptance() const = 0;
};

struct TransitionOptions {
  int64_t num_leapfrog = 1;
};

using TransitionRegistry = Registry<Transition, const TransitionOptions&>;

}  // namespace crais
