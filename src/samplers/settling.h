/// @file
/// Particles that settle under a density in the coordinates of several normals.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/affine_map.h"
#include "core/transition.h"
#include "targets/partitioned.h"

namespace crais {

/// Which part each point belongs to, drawn with probability r_j(z): [P,K] int64 places among the
/// parts of a problem, for logs [J,P,K] of `PartitionedTarget::log_components`.
at::Tensor draw_labels(const at::Tensor& logs, at::Generator& rng);

/// `count` particles of equal weight, [count,D], by systematic resampling of z [N,D] with
/// log-weights [N] float64.
at::Tensor resampled(const at::Tensor& z, const at::Tensor& log_w, int64_t count,
                     at::Generator& rng);

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
/// weights. Cost: 11 evaluations a particle and sweep.
Settled settle(const PartitionedTarget& parts, const AffineMap& normals, const at::Tensor& z,
               const at::Tensor& step_sizes, const Path& path, const Transition& transition,
               int64_t sweeps, at::Generator& rng);

}  // namespace crais
