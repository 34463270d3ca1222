/// @file
/// A target in the coordinates of a base: the only place where particles meet targets.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/affine_map.h"
#include "core/cost.h"
#include "core/particles.h"
#include "core/partition.h"
#include "core/target.h"

namespace crais {

/// Log densities [P,K] of `target` at starting particles, with -inf in place of NaN where few of
/// them are NaN and the target forgives that. Throws Error kData that names problem and particle if
/// another one is NaN or +inf, or if all of them are -inf.
at::Tensor checked_starts(const at::Tensor& log_density, const Target& target);

/// P densities in the coordinates e of their base z = m + A e. Immutable: threads may share it.
///
/// Each density is divided by exp(log_center), a rough guess of its normaliser. A power path of
/// order alpha != 0 depends on that scale (beta acts as beta Z^alpha / (beta Z^alpha + 1 - beta)):
/// without the division all its temperatures crowd at one end. The geometric path does not depend
/// on the scale. A function that anneals a problem adds the centre again: the log-weights that it
/// returns are those of gamma itself.
///
///     crais::Problem problem(target, crais::AffineMap::identity(1, 3, at::kDouble));
///     crais::Particles start = problem.start(16, rng);  // 16 draws of the base, evaluated
class Problem {
 public:
  /// Throws c10::Error if target and base differ in shape.
  Problem(std::shared_ptr<const Target> target, const AffineMap& base);
  /// A problem with log_center [P], nats.
  Problem(std::shared_ptr<const Target> target, AffineMap base, const at::Tensor& log_center);

  int64_t num_problems() const { return base_.num_problems(); }
  int64_t dim() const { return base_.dim(); }
  const Target& target() const { return *target_; }
  const std::shared_ptr<const Target>& shared_target() const { return target_; }
  const AffineMap& base() const { return base_; }
  /// [P] float64, nats: the constant that is subtracted from every cached log_gamma.
  const at::Tensor& log_center() const { return log_center_; }

  /// The problem of the user that each row is a part of. Absent if each row is a problem.
  const std::optional<Partition>& partition() const { return partition_; }
  void set_partition(std::optional<Partition> partition) { partition_ = std::move(partition); }

  /// K draws of the base for each problem, evaluated. Cost: 1 evaluation a particle. A particle of
  /// zero density gets the log density kNothing, and its chain has no weight. Throws Error kData
  /// that names problem and particle if a density is NaN or +inf, if a gradient is not finite where
  /// the density is, or if every particle has zero density.
  Particles start(int64_t num_particles, at::Generator& rng) const;

  /// The log density of starting particles whose density is zero. It is finite, so that
  /// temperatures can multiply it, and low enough for a weight of zero.
  static constexpr double kNothing = -1e30;

  /// K draws e [P,K,D] of the base. Cost: none.
  at::Tensor draw(int64_t num_particles, at::Generator& rng) const;

  /// Particles at e [P,K,D], evaluated. Any density is allowed. Cost: 1 evaluation a particle.
  Particles evaluate(const at::Tensor& e) const;

  /// log gamma - log q0 at e [P,K,D], not centred, without a gradient: [P,K] float64.
  /// Cost: 1 density a particle.
  at::Tensor log_weight(const at::Tensor& e) const;

  /// Cost of one evaluation, with its gradient, of `num_particles` particles of every problem.
  Cost cost_of(int64_t num_particles) const {
    return Cost::with_gradient(num_problems() * num_particles);
  }

  /// The rows at `index` [Q] int64, each as a problem of its own. `index` is on the device of the
  /// problem's tensors.
  Problem select(const at::Tensor& index) const;
  /// The problems at `index` [Q] int64 with all their parts.
  Problem select_whole(const at::Tensor& index) const;

 private:
  std::shared_ptr<const Target> target_;
  AffineMap base_;
  at::Tensor log_center_;
  at::Tensor log_scale_;  // [P,1]: log|det A| - log_center
  std::optional<Partition> partition_;
};

}  // namespace crais
