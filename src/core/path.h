/// @file
/// The bridge between base and target, as a function of two scalars.
#pragma once

#include <ATen/ATen.h>

#include "core/registry.h"

namespace crais {

/// log gamma_beta and its derivatives with respect to log q0 and log gamma, each [P,K].
struct PathPoint {
  at::Tensor log_density;
  at::Tensor d_log_q0;
  at::Tensor d_log_gamma;
};

/// A path never sees a particle and never calls a target: it combines two cached numbers.
///
///     auto path = crais::PathRegistry::instance().make("path", "power:0.5");
///     crais::PathPoint p = path->at(beta, log_q0, log_gamma);  // p.log_density [P,K]
class Path {
 public:
  virtual ~Path() = default;

  /// The annealed density at `beta` [P,1] in [0,1], from log q0 and log gamma [P,K] float64.
  /// Exact at beta = 0 and 1, whatever the other end is (-inf included).
  virtual PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
                       const at::Tensor& log_gamma) const = 0;

  /// The order alpha of the power mean that the path is: 0 geometric, 1 mixture.
  virtual double order() const = 0;
};

using PathRegistry = Registry<Path>;

}  // namespace crais
