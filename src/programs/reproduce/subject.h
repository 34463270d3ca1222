// What an experiment estimates: a named density, or images under a VAE.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/vae.h"
#include "programs/reproduce/cells.h"

namespace crais {

struct Subject {
  /// A task that ends with estimate_cell, for flags of estimate-logz or eval-loglik: these programs
  /// can repeat each number. If `for_plans`, only its pilots count.
  std::function<Task(const std::string& flags, uint64_t seed, bool for_plans)> task;
  at::Tensor truth;  // log Z [] or log p(x) [N], nats; undefined if it is not known
  // Of the target's modes the masses [M], and exact draws [count,D]; undefined if they are not
  // known.
  at::Tensor masses, draws;
  bool has_images = false;  // problems differ: repetitions are the seeds, not the problems
};

/// Replicates of a named target. `estimate-logz TARGET FLAGS --problems REPLICATES --seed SEED`
/// repeats the result of a row, with `--witness none` for AIS and `--base prior` if no base is
/// named. With `particles`, results have so many of the first run, of equal weight, and the masses
/// of modes in each run.
Subject density_subject(const ExperimentOptions& options, const std::string& target,
                        int64_t replicates, int64_t particles = 0);
/// The first `count` test images under the checkpoint of the options.
Subject checkpoint_subject(const ExperimentOptions& options, int64_t count);
/// Simulated images of a VAE with two latents, whose log p(x) a grid of points^2 latents finds, by
/// the trapezoid rule: exact to rounding once posteriors are wider than the spacing.
Subject vae_subject(const ExperimentOptions& options, const Vae& vae, int64_t count,
                    int64_t points);

/// A VAE with two latents and side x side Bernoulli pixels (side a divisor of 28), trained on drawn
/// digits for some seconds. Without hidden layers its posteriors are log-concave. With hidden
/// layers they have several modes, and plateaus where the units saturate.
Vae small_vae(int64_t side, const std::vector<int64_t>& hidden);

}  // namespace crais
