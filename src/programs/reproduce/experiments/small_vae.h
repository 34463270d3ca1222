// A VAE whose log p(x) is known: images for experiments that check estimates.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "programs/reproduce/vae_experiment.h"

namespace crais {

/// Two latents, side x side Bernoulli pixels (a divisor of 28), trained on drawn digits for some
/// seconds. Without hidden layers posteriors are log-concave; with them they have several modes,
/// and plateaus where the units saturate.
Vae small_vae(int64_t side, const std::vector<int64_t>& hidden);

/// log p(x), nats, of the images of an experiment with such a VAE: [N], by the trapezoid rule on
/// points^2 latents, which is exact to rounding once posteriors are wider than the spacing.
at::Tensor integrated(const ExperimentOptions& options, const VaeExperiment& experiment,
                      int64_t points);

}  // namespace crais
