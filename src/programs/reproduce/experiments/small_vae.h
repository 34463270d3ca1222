// VAEs whose log p(x) is known, for experiments that check estimates.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "programs/reproduce/vae_experiment.h"

namespace crais {

/// A VAE with two latents and side x side Bernoulli pixels (side a divisor of 28), trained on drawn
/// digits for some seconds. Without hidden layers its posteriors are log-concave. With hidden
/// layers they have several modes, and plateaus where the units saturate.
Vae small_vae(int64_t side, const std::vector<int64_t>& hidden);

/// log p(x) [N], nats, of the images of an experiment with such a VAE, by the trapezoid rule on
/// points^2 latents. The rule is exact to rounding once posteriors are wider than the spacing.
at::Tensor integrated(const ExperimentOptions& options, const VaeExperiment& experiment,
                      int64_t points);

}  // namespace crais
