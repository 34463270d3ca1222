// A target seen from a base: the one place where targets are evaluated, and counted.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/affine_map.h"
#include "core/particles.h"
#include "core/target.h"

namespace crais {

/// Evaluations of one particle of one problem each: `densities` of all, `gradients` of those that
/// also asked for the gradient.
struct Cost {
  int64_t densities = 0;
  int64_t gradients = 0;
};

/// P densities in the coordinates e of their base z = m + A e. Not shared between threads: it
/// counts.
class Problem {
 public:
  /// `target` must outlive the problem. Throws c10::Error if target and base differ in shape.
  Problem(const Target& target, AffineMap base);

  int64_t num_problems() const { return base_.num_problems(); }
  int64_t dim() const { return base_.dim(); }
  const Target& target() const { return target_; }
  const AffineMap& base() const { return base_; }

  /// K draws of the base per problem, evaluated. Cost: 1 per particle.
  /// Throws Error kData, naming problem and particle, if a density or gradient is not finite.
  Particles start(int64_t num_particles, at::Generator& rng) const;

  /// K draws e [P,K,D] of the base. Cost: none.
  at::Tensor draw(int64_t num_particles, at::Generator& rng) const;

  /// Particles at e [P,K,D]; densities may be anything. Cost: 1 per particle.
  Particles evaluate(const at::Tensor& e) const;

  /// log gamma - log q0 at e [P,K,D], without a gradient: [P,K] float64. Cost: 1 density per
  /// particle.
  at::Tensor log_weight(const at::Tensor& e) const;

  /// Counted so far, summed over problems and particles.
  const Cost& cost() const { return cost_; }

 private:
  const Target& target_;
  AffineMap base_;
  mutable Cost cost_;
};

}  // namespace crais
