/// @file
/// The integrand: one unnormalised density for each problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/affine_map.h"
#include "core/registry.h"

namespace crais {

/// log gamma(z) and its gradient for a batch of particles.
struct Evaluation {
  at::Tensor log_density;  // [P,K], nats
  at::Tensor grad;         // [P,K,D]
};

/// Shares of the components of a mixture at particles.
struct Components {
  at::Tensor shares;  // [P,K,C] float64: share of each component in gamma(z); they sum to 1
  at::Tensor masses;  // [C] float64: share of each in Z, the mean of `shares` under the target
};

/// What is known of a target in advance. A target fills it in its constructor.
struct Traits {
  at::TensorOptions tensors = at::kDouble;  ///< dtype and device of particles
  bool can_select = false;  ///< `select` divides it; else it is estimated whole, without `budget`
  bool has_prior = false;  ///< of one density: prior_base() is its prior, beyond which no mode lies
  bool may_be_multimodal = false;  ///< a search for modes should start at several points
  /// Bases reach far: NaN at fewer than one in a hundred starting particles counts as zero.
  bool forgives_starts = false;
  /// Every evaluation of particles of one shape launches the same operations on a device and waits
  /// for none of them: a move may be recorded once and replayed.
  bool is_replayable = false;
  bool forces_pay = false;     ///< `with_forces(at::kBFloat16)` is faster on this machine
  int64_t curvature_cost = 0;  ///< at one point, in evaluations of a particle; 0: D + 1
  std::optional<at::Tensor> starts = {};  ///< [S,D], from which a search for modes climbs first
  std::optional<at::Tensor> draws = {};   ///< [C,N,D] of C chains, to which a base may be fitted
  std::optional<at::Tensor> log_normalizer = {};  ///< log Z [P] or, if all agree, [1], nats
  std::optional<AffineMap> prior = {};  ///< mean and covariance of the prior, if not N(0, I)
};

/// P unnormalised densities gamma_p(z) on R^D. Immutable after construction: threads may share it.
///
/// A new target needs `num_problems`, `dim` and `log_density`, written with ATen operations. The
/// gradient then comes from autograd.
///
///     class Normal : public crais::Target {
///      public:
///       int64_t num_problems() const override { return 1; }
///       int64_t dim() const override { return 3; }
///       at::Tensor log_density(const at::Tensor& z) const override {
///         return -0.5 * z.square().sum(-1);
///       }
///     };
class Target : public std::enable_shared_from_this<Target> {
 public:
  virtual ~Target() = default;

  virtual int64_t num_problems() const = 0;
  virtual int64_t dim() const = 0;

  /// log gamma [P,K], nats, at z [P,K,D].
  virtual at::Tensor log_density(const at::Tensor& z) const = 0;

  /// Value and gradient: one evaluation, the unit of cost. Default: autograd of log_density.
  virtual Evaluation evaluate(const at::Tensor& z) const;

  /// A target with the same problems and, up to rounding, the same values, whose gradients use
  /// products in `dtype` (at::kBFloat16) or a kernel's substitute for it. Gradients that move
  /// particles need less precision than the values that accept and weigh them. The gradient must be
  /// a function of z alone, bit for bit. Null if there is no such target, which is the default.
  virtual std::shared_ptr<const Target> with_forces(at::ScalarType /*dtype*/) const { return {}; }

  /// The problems at `index` [Q] int64, in its order. Throws kArgument unless traits().can_select.
  virtual std::shared_ptr<const Target> select(const at::Tensor& index) const;

  /// Minus the Hessian of log gamma at one point of each problem, or a positive definite substitute
  /// such as Gauss-Newton's: z [P,D] -> [P,D,D]. Default: autograd (D vector-Jacobian products of
  /// the gradient), or differences of gradients if second derivatives are missing or not finite.
  /// The result may be indefinite or not finite if log gamma is not concave or not finite.
  virtual at::Tensor curvature(const at::Tensor& z) const;

  /// A base that was fitted in advance, such as an encoder's q(z | x).
  virtual std::optional<AffineMap> amortised_base() const { return {}; }

  /// The components at z [P,K,D], if the target is a mixture that knows them. Cost: as a density.
  virtual std::optional<Components> components(const at::Tensor& /*z*/) const { return {}; }

  /// k exact draws of gamma / Z for each problem, [P,k,D], if the target can make them. The draws
  /// are independent, except for targets that know only one draw (the latent of a simulated image)
  /// and repeat it.
  virtual std::optional<at::Tensor> exact_sample(int64_t /*k*/, at::Generator& /*rng*/) const {
    return {};
  }

  const Traits& traits() const { return traits_; }
  at::TensorOptions options() const { return traits_.tensors; }
  int64_t curvature_cost() const {
    return traits_.curvature_cost > 0 ? traits_.curvature_cost : dim() + 1;
  }
  /// The prior's normal for each problem.
  AffineMap prior_base() const;
  /// log Z [P], nats, if it is known.
  std::optional<at::Tensor> true_log_normalizer() const;

  /// The problems from `begin` to `end` - 1. Returns this target if these are all problems.
  std::shared_ptr<const Target> slice(int64_t begin, int64_t end) const;

  /// This target as a shared pointer: owning if a shared_ptr owns the target, else borrowed.
  std::shared_ptr<const Target> shared() const;

 protected:
  Traits traits_;
};

/// A pointer to a target that its caller owns and keeps alive while the pointer is used.
inline std::shared_ptr<const Target> borrow(const Target& target) {
  return {std::shared_ptr<const Target>(), &target};
}

/// The sum over problems of log gamma at one fixed point and at each of the target's starts, nats.
/// It tells targets of one name apart. Cost: 1 + S densities a problem.
double probe(const Target& target);

/// Options of all registered targets.
struct TargetOptions {
  int64_t num_problems = 1;  // replicates of the same density
  at::TensorOptions tensors =
      at::kDouble;       // device and dtype of the constants and of the particles
  std::string data_dir;  // folder of data files; if empty, $CRAIS_DATA, else ./data
};

/// Targets by name: "normal:128", "logistic-regression:pima,variance=5".
using TargetRegistry = Registry<Target, const TargetOptions&>;

}  // namespace crais
