/// @file
/// Particles that settle under a density in the coordinates of several normals.
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

/// What a particle costs that settles for `sweeps`, in evaluations: known beforehand.
int64_t settling_evaluations(const Transition& transition, int64_t sweeps);

/// What settling has come to.
struct Settled {
  at::Tensor z;           // [N,D]: the particles at the end
  at::Tensor passed;      // [M,D]: where they were after each sweep but the first
  at::Tensor step_sizes;  // [J] float64
  Cost cost;
};

/// Particles z [N,D] of one problem move under its density: a Gibbs sampler of particles and
/// labels. Each sweep draws the label of every particle, then moves it ten times in the coordinates
/// of that part, at step sizes of several scales. `step_sizes` [J] adapt; the particles are not for
/// weights. Cost: see settling_evaluations.
Settled settle(const PartitionedTarget& parts, const AffineMap& normals, const at::Tensor& z,
               const at::Tensor& step_sizes, const Path& path, const Transition& transition,
               int64_t sweeps, at::Generator& rng);

}  // namespace crais
