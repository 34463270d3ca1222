/// @file
/// Particles that move under a density in the coordinates of several normals until they settle.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/affine_map.h"
#include "core/transition.h"
#include "targets/partitioned.h"

namespace crais {

/// `count` particles of equal weight, [count,D], by systematic resampling of z [N,D] with
/// log-weights [N] float64.
at::Tensor resampled(const at::Tensor& z, const at::Tensor& log_w, int64_t count,
                     at::Generator& rng);

/// Cost in evaluations of one particle that settles for `sweeps` sweeps, known in advance.
int64_t settling_evaluations(const Transition& transition, int64_t sweeps);

/// The result of settling.
struct Settled {
  at::Tensor z;           // [N,D]: the particles at the end
  at::Tensor passed;      // [M,D]: the particles after each sweep but the first
  at::Tensor step_sizes;  // [J] float64
  Cost cost;
};

/// Moves particles z [N,D] of one problem under its density: a Gibbs sampler of particles and
/// labels. Each sweep draws the label of every particle, then moves the particle ten times in the
/// coordinates of that part, at step sizes of several scales. `step_sizes` [J] adapt, so the
/// particles must not be used for weights. Cost: see settling_evaluations.
Settled settle(const PartitionedTarget& parts, const AffineMap& normals, const at::Tensor& z,
               const at::Tensor& step_sizes, const Transition& transition, int64_t sweeps,
               at::Generator& rng);

}  // namespace crais
