// Particles and densities in the plane, prepared for pictures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/target.h"
#include "report/plot.h"

namespace crais {

/// `count` rows of z [K,2], resampled systematically by their weights [K]. The chosen rows have
/// equal weight. float64.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed);

/// A rectangle around nearly all of z [K,2] float64, with a margin.
Window window_around(const at::Tensor& z);

/// Contours around half and around 95% of the first problem's mass within the window. Cost: 121 x
/// 121 evaluations without a gradient.
Contours contours_of(const Target& target, const Window& window);

}  // namespace crais
