// A target seen from a base: the one place where targets are evaluated, and counted.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "core/affine_map.h"
#include "core/particles.h"
#include "core/target.h"

namespace crais {

/// Evaluations of one particle of one problem each: `densities` of all, `gradients` of those that
/// also asked for the gradient.
struct Cost {
  int64_t densities = 0;
  int64_t gradients = 0;

  Cost& operator+=(const Cost& other) {
    densities += other.densities;
    gradients += other.gradients;
    return *this;
  }
  friend Cost operator-(const Cost& a, const Cost& b) {
    return {a.densities - b.densities, a.gradients - b.gradients};
  }
};

/// P densities in the coordinates e of their base z = m + A e. Counts, so threads do not share it.
///
/// Each density is divided by exp(log_center), a rough guess of its normaliser. A power path of
/// order alpha != 0 depends on that scale (beta acts as beta Z^alpha / (beta Z^alpha + 1 - beta)),
/// and without it all its temperatures crowd at one end; the geometric path does not care.
class Problem {
 public:
  /// `target` must outlive the problem. Throws c10::Error if target and base differ in shape.
  Problem(const Target& target, AffineMap base);
  /// The same, centred: log_center [P], nats.
  Problem(const Target& target, AffineMap base, const at::Tensor& log_center);

  int64_t num_problems() const { return base_.num_problems(); }
  int64_t dim() const { return base_.dim(); }
  const Target& target() const { return target_; }
  const AffineMap& base() const { return base_; }
  /// [P] float64: what every log_gamma lacks, and every estimate of its normaliser gets back.
  const at::Tensor& log_center() const { return log_center_; }

  /// K draws of the base per problem, evaluated. Cost: 1 per particle.
  /// Throws Error kData, naming problem and particle, if a density or gradient is not finite.
  Particles start(int64_t num_particles, at::Generator& rng) const;

  /// K draws e [P,K,D] of the base. Cost: none.
  at::Tensor draw(int64_t num_particles, at::Generator& rng) const;

  /// Particles at e [P,K,D]; densities may be anything. Cost: 1 per particle.
  Particles evaluate(const at::Tensor& e) const;

  /// The same, density and gradient both differentiable with respect to e, which must require a
  /// gradient. Cost: 2 per particle, for the backward pass takes a Hessian-vector product.
  Particles evaluate_with_graph(const at::Tensor& e) const;

  /// log gamma - log q0 at e [P,K,D], not centred, without a gradient: [P,K] float64.
  /// Cost: 1 density per particle.
  at::Tensor log_weight(const at::Tensor& e) const;

  /// Counted so far, summed over problems and particles.
  const Cost& cost() const { return cost_; }
  /// Makes the count `before` and `more`: for evaluations that a device repeats by itself.
  void count_as(const Cost& before, const Cost& more) const {
    cost_ = before;
    cost_ += more;
  }

 private:
  const Target& target_;
  AffineMap base_;
  at::Tensor log_center_;
  at::Tensor log_scale_;  // [P,1]: log|det A| - log_center
  mutable Cost cost_;
};

/// Some problems of another, Q of its P, counted by themselves.
struct ProblemPart {
  /// `index` [Q] int64, on the device of the problem's tensors; `whole` must outlive it.
  ProblemPart(const Problem& whole, const at::Tensor& index)
      : target(whole.target().select(index)),
        problem(*target, whole.base().select(index), whole.log_center().index_select(0, index)) {}

  std::unique_ptr<Target> target;
  Problem problem;
};

}  // namespace crais
