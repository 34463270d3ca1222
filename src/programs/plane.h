// Particles and densities in the plane, ready to be drawn.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/target.h"
#include "report/plot.h"

namespace crais {

/// Some rows of z [K,2], resampled systematically by their weights [K]: equal weights, no rows that
/// matter left out. float64.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed);

/// A rectangle around nearly all of z [K,2] float64, with room beside.
Window window_around(const at::Tensor& z);

/// Lines around half and around 95% of the mass within the window, of the first problem.
/// Cost: 121 x 121 evaluations without a gradient.
Contours contours_of(const Target& target, const Window& window);

}  // namespace crais
