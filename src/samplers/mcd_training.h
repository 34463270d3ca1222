// Learning the parameters of Monte Carlo Diffusion.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/plan_error.h"
#include "core/problem.h"
#include "samplers/mcd.h"

namespace crais {

struct McdTrainingOptions {
  double step_size = 0.01;    // initial epsilon of every move
  int64_t iterations = 2000;  // limit
  int64_t batch = 128;        // chains an iteration, spread over the problems; with more
  // problems, this many problems of one chain each
  double learning_rate = 0.01;      // Adam's; falls to 0 over the second half
  int64_t validate_every = 50;      // iterations
  int64_t validation_chains = 256;  // spread over the problems, with equal noise each time
  int64_t patience = 0;             // validations without improvement before stopping; 0: no limit
};

struct TrainedMcd {
  at::Tensor flat;                    // see McdParameters
  double initial_elbo = 0, elbo = 0;  // nats, mean over problems, on the validation noise
  int64_t iterations = 0;
  Cost cost;
};

/// Maximises E[log w] <= log Z over all McdParameters by reparameterised gradients and Adam. Keeps
/// the parameters with the best validation, which may be those at the start. The norm of the
/// gradient is clipped to a multiple of its own running mean: one wild chain must not spoil Adam's
/// moments.
///
/// If there are more problems than `batch`, as many as `validation_chains` but at most a quarter
/// are held out for validation, and each iteration draws from the rest.
///
/// Streams of `seed` alone determine the result. Cost: 2 (1 + M) evaluations for each chain of an
/// iteration, 1 + M for each chain of a validation. Throws DivergedError if the bound is not finite
/// at the start or at an iteration.
TrainedMcd train_mcd(const Problem& problem, const ScoreNetworkShape& shape,
                     const McdTrainingOptions& options, uint64_t seed);

}  // namespace crais
