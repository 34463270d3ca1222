// Splines fitted to single coordinates of draws.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "core/spline.h"

namespace crais {

/// The splines that make coordinates of draws z [N,D] float64 normal whose densities are better
/// described by two to four normals than by one: skew, heavy-tailed, or with several modes. Null if
/// there are none.
std::shared_ptr<const Spline> fit_spline(const at::Tensor& z);

}  // namespace crais
