/// @file
/// What is integrated: an unnormalised density per problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/affine_map.h"
#include "core/registry.h"

namespace crais {

/// log gamma(z) and its gradient for a batch of particles.
struct Evaluation {
  at::Tensor log_density;  // [P,K], nats
  at::Tensor grad;         // [P,K,D]
};

/// How a mixture divides into its components at particles.
struct Components {
  at::Tensor shares;  // [P,K,C] float64: of each in gamma(z); they sum to 1
  at::Tensor masses;  // [C] float64: of each in Z, which is the mean of `shares` under the target
};

/// P unnormalised densities gamma_p(z) on R^D. Immutable after construction: threads share it.
///
/// A physicist's target needs `num_problems`, `dim` and `log_density`, written with ATen
/// operations; the gradient then comes from autograd.
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

  /// z [P,K,D] -> log gamma [P,K], nats.
  virtual at::Tensor log_density(const at::Tensor& z) const = 0;

  /// Value and gradient together, the cost unit of the library. Default: autograd of log_density.
  virtual Evaluation evaluate(const at::Tensor& z) const;

  /// The same problems and, up to rounding, values, with gradients whose products are computed in
  /// `dtype` (at::kBFloat16) or what a kernel has in its place: what moves particles need not be as
  /// exact as what accepts and weighs them. It must be a function of z alone, bit for bit. Null
  /// where there is none. Default: none.
  virtual std::shared_ptr<const Target> with_forces(at::ScalarType /*dtype*/) const { return {}; }
  /// True if `with_forces(dtype)` is faster than this target on this machine.
  virtual bool forces_pay(at::ScalarType /*dtype*/) const { return false; }

  /// True if `select` is there: the target can be divided into its problems. One that cannot is
  /// estimated as a whole, without `target_error` and `budget`.
  virtual bool can_select() const { return false; }

  /// True if every problem is the same density: bases may be fitted to one of them. Default: no.
  virtual bool is_replicated() const { return false; }

  /// The problems at `index` [Q] int64, in that order. Throws Error kArgument unless can_select().
  virtual std::shared_ptr<const Target> select(const at::Tensor& index) const;

  /// The problems from `begin` to `end` - 1; this target itself where those are all.
  std::shared_ptr<const Target> slice(int64_t begin, int64_t end) const;

  /// What its particles are: dtype and device. Default: float64 on the CPU.
  virtual at::TensorOptions options() const { return at::kDouble; }

  /// Minus the Hessian of log gamma at one point of each problem, or a positive definite stand-in
  /// such as Gauss-Newton's: z [P,D] -> [P,D,D]. Default: autograd, D vector-Jacobian products of
  /// the gradient, or differences of gradients where second derivatives are missing or not finite.
  /// May be indefinite or not finite where log gamma is not concave or not finite.
  virtual at::Tensor curvature(const at::Tensor& z) const;
  /// What `curvature` costs at one point, in evaluations of a particle, rounded up.
  virtual int64_t curvature_cost() const { return dim() + 1; }

  /// The normal that stands for the prior: its own mean and covariance. Default: N(0, I).
  virtual AffineMap prior_base() const;

  /// A base that was fitted beforehand, such as an encoder's q(z | x).
  virtual std::optional<AffineMap> amortised_base() const { return {}; }

  /// True if there may well be modes or kinks beside the mode that a climb finds: a search should
  /// begin at several points. Default: false.
  virtual bool may_be_multimodal() const { return false; }

  /// Points [S,D] that somebody knows of, from which a search for modes climbs first. Default:
  /// none.
  virtual std::optional<at::Tensor> starts() const { return {}; }

  /// True if every evaluation of particles of one shape launches the same operations on a device
  /// and waits for none of them, so that a move may be recorded once and replayed. Default: not
  /// known.
  virtual bool is_replayable() const { return false; }

  /// [P] nats, where it is known.
  virtual std::optional<at::Tensor> true_log_normalizer() const { return {}; }

  /// Its components at z [P,K,D], where it is a mixture and says so. Cost: as a density.
  virtual std::optional<Components> components(const at::Tensor& /*z*/) const { return {}; }

  /// [P,k,D] draws of gamma / Z, where there is a way. Each is exact; they are independent but for
  /// targets that know one draw only (the latent that made a simulated image) and repeat it.
  virtual std::optional<at::Tensor> exact_sample(int64_t /*k*/, at::Generator& /*rng*/) const {
    return {};
  }

  /// Itself, owned where a shared_ptr owns it, borrowed otherwise.
  std::shared_ptr<const Target> shared() const;
};

/// A pointer to a target that somebody else owns, and keeps for as long as the pointer is used.
inline std::shared_ptr<const Target> borrow(const Target& target) {
  return {std::shared_ptr<const Target>(), &target};
}

/// The sum over problems of log gamma at one fixed point, and at each of its starts, nats: tells
/// targets of one name apart. Cost: 1 + S densities per problem.
double probe(const Target& target);

/// What every registered target is told.
struct TargetOptions {
  int64_t num_problems = 1;  // replicates of the same density
  at::TensorOptions tensors =
      at::kDouble;       // device and dtype of its constants, as of its particles
  std::string data_dir;  // where its files may lie; else $CRAIS_DATA, ./data
};

/// Densities with a name: "normal:128", "logistic-regression:pima,variance=5".
using TargetRegistry = Registry<Target, const TargetOptions&>;

}  // namespace crais
