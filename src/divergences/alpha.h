/// @file
/// The alpha divergence: KL(q || pi) at 0, KL(pi || q) at 1.
#pragma once

#include <memory>

#include "core/divergence.h"

namespace crais {

/// f(u) = (u^alpha - alpha u) / (alpha (alpha - 1)) + 1 / alpha, u - 1 - log u at 0 and u log u - u
/// + 1 at 1, so that g(u) = (u^alpha - 1) / alpha. |alpha| < 1e-6 counts as 0.
std::shared_ptr<const Divergence> make_alpha_divergence(double alpha);

}  // namespace crais
