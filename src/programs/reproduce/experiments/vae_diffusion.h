// Monte Carlo Diffusion on images, beside annealing at as many evaluations.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "programs/reproduce/vae_experiment.h"
#include "report/page.h"

namespace crais {

/// The test images that MCD estimates: the same for every experiment, so that a training serves
/// all.
inline int64_t num_diffusion_images(bool full) { return full ? 1000 : 100; }

/// Trains MCD as in the paper and properly, estimates the images with 16 chains of 64 moves, and
/// puts its error against `truth` [N], nats, of the first N of them beside that of untrained chains
/// and of annealing, and beside what training took. Each training begins anew from a seed of its
/// own: SE is over trainings.
/// @return  the best by its bound, as a point of |error| against evaluations an image, training
///          apart: none where no training got there.
std::optional<Series> diffusion_table(const VaeExperiment& experiment, const at::Tensor& truth,
                                      const ExperimentOptions& options, Page& page);

}  // namespace crais
