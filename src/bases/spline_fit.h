// Splines fitted to single coordinates of draws.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "core/spline.h"

namespace crais {

struct SplineOptions {
  int64_t most_normals = 4;  // that describe a coordinate
  at::Tensor is_heavy = {};  // [D] bool: coordinates whose tails are heavy whatever draws say
};

/// The splines that make coordinates of draws z [N,D] float64 normal whose densities are better
/// described by several normals than by one (skew, or with several modes), or whose tails are
/// heavy. Null if there are none.
std::shared_ptr<const Spline> fit_spline(const at::Tensor& z, const SplineOptions& options = {});

}  // namespace crais
