// Couplings fitted to draws by regression.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "bases/funnels.h"
#include "core/coupling.h"

namespace crais {

/// The coupling that makes draws z [N,D] float64 more nearly normal. A few coordinates, the
/// drivers, are chosen: those on which most of the scales and bends of the rest depend. Null if
/// there are none. Means and log-scales are those of a regression with unequal variances.
///                                                                  [Harvey 1976; Aitkin 1987]
/// What `funnels` knows comes first: draws can be misleading.
std::shared_ptr<const Coupling> fit_coupling(const at::Tensor& z, const Funnels& funnels);

}  // namespace crais
