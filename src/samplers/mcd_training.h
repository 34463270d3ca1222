// Learning the parameters of Monte Carlo Diffusion.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/plan_error.h"
#include "core/problem.h"
#include "samplers/mcd.h"

namespace crais {

struct McdTrainingOptions {
  double step_size = 0.01;          // epsilon of every move, to begin with
  int64_t iterations = 2000;        // at most
  int64_t batch = 128;              // chains an iteration, spread over the problems, or as many
                                    // problems of one chain each, where there are more
  double learning_rate = 0.01;      // Adam's; falls to 0 over the second half
  int64_t validate_every = 50;      // iterations
  int64_t validation_chains = 256;  // spread over the problems, the same noise each time
  int64_t patience = 0;             // validations without a better one before stopping; 0: never
};

struct TrainedMcd {
  at::Tensor flat;                    // see McdParameters
  double initial_elbo = 0, elbo = 0;  // nats, mean over problems, on the validation noise
  int64_t iterations = 0;
  Cost cost;
};

/// Maximises E[log w] <= log Z over everything in McdParameters by reparameterised gradients and
/// Adam, and keeps the parameters that validate best, those at the start among them. The gradient's
/// norm is clipped to a multiple of its own running mean: one wild chain must not spoil Adam's
/// moments.
///
/// Of more problems than `batch` those that validate, as many as `validation_chains` but at most a
/// quarter, are held out, and each iteration draws others of the rest.
///
/// Streams of `seed` alone decide it. Cost: 2 (1 + M) evaluations per chain of an iteration, 1 + M
/// per chain of a validation.
/// Throws DivergedError if the bound at the start is not finite or an iteration's no longer is.
TrainedMcd train_mcd(const Problem& problem, const ScoreNetworkShape& shape,
                     const McdTrainingOptions& options, uint64_t seed);

}  // namespace crais
