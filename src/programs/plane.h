// Particles in the plane, prepared for pictures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace crais {

/// `count` rows of z [K,2], resampled systematically by their weights [K]. The chosen rows have
/// equal weight. float64.
at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed);

}  // namespace crais
