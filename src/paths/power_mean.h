/// @file
/// The power-mean path of a given order: geometric at 0, a mixture at 1.
#pragma once

#include <memory>

#include "core/path.h"

namespace crais {

std::unique_ptr<Path> make_geometric_path();

/// gamma_beta = ((1-beta) q0^alpha + beta gamma^alpha)^(1/alpha) for any alpha. |alpha| < 1e-6
/// gives the geometric path.
std::unique_ptr<Path> make_power_mean_path(double alpha);

}  // namespace crais
