/// @file
/// Bases, the start of the chains: a Gaussian fitted to each problem.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>

#include "core/affine_map.h"
#include "core/bijection.h"
#include "core/cost.h"
#include "core/partition.h"
#include "core/registry.h"
#include "core/target.h"

namespace crais {

/// Above so many dimensions particles are too few to estimate covariances, and evaluations are
/// dear: searches, rounds and witnesses are short.
constexpr int64_t kManyDims = 128;

struct Base {
  AffineMap map;
  at::Tensor fell_back;  // [P] bool: the fit failed, and the problem keeps its first guess
  at::Tensor ambiguous;  // [P] bool: there may be modes that the base does not cover
  Cost cost;             // of fitting, summed over problems
  // Present if problems have several parts: `map` then has one row for each part, in order of
  // decreasing share, and the other fields one entry for each problem.
  std::optional<Partition> partition = {};
  // Present if the normals are in coordinates u, and z = T(u), for all problems.
  std::shared_ptr<const Bijection> bijection = {};
  at::Tensor apart = {};  // [P] bool: chains of the user's draws differ; undefined: no draws
  at::Tensor tails = {};  // [Q] bool: parts that reach past a kink; undefined if there are none
  // [P] float64, nats: log Z by a sum over points of the prior, less its error; undefined without
  // one. An estimate that is lower has missed mass.
  at::Tensor at_least = {};
  // Normals at the modes of one problem that a search saw, but that are too light to be parts.
  std::optional<AffineMap> light_modes = {};

  /// A base that needs no fit.
  explicit Base(AffineMap ready)
      : map(std::move(ready)),
        fell_back(at::zeros({map.num_problems()}, map.options().dtype(at::kBool))),
        ambiguous(fell_back) {}
  Base(AffineMap fitted, at::Tensor failed, Cost spent)
      : map(std::move(fitted)),
        fell_back(std::move(failed)),
        ambiguous(at::zeros_like(fell_back)),
        cost(spent) {}

  int64_t num_problems() const { return fell_back.size(0); }
  /// Of each part, in nats; 0 without a partition.
  at::Tensor log_share() const;
  /// The first part of each problem, which has the greatest share.
  AffineMap main_parts() const;
  /// The rows of the first parts, [P] int64. Requires a partition.
  at::Tensor main_rows() const;
};

/// A rule that chooses bases. Immutable: threads may share it.
///
///     auto laplace = crais::make_laplace({.widening = 1.1});  // make_base("laplace:1.1")
///     crais::Base base = laplace->build(target, rng);  // base.map, base.cost
class BaseRule {
 public:
  virtual ~BaseRule() = default;
  /// One base for each problem of `target`. A base must not depend on draws that are used to
  /// estimate.
  virtual Base build(const Target& target, at::Generator& rng) const = 0;
  /// The expected number of evaluations for the fit of one problem; nothing if only the fit itself
  /// can tell. `Base::cost` counts the actual number.
  virtual std::optional<double> expected_cost(const Target& /*target*/) const { return {}; }

  std::string name = {};  ///< the specification that makes the rule again
};

/// What the driver that asks for a rule tells it of the problems.
struct BaseOptions {
  bool one_density = false;  ///< one fit is for all replicates and worth a longer search
};
using BaseRegistry = Registry<BaseRule, const BaseOptions&>;

/// The rule that `text` names.
std::unique_ptr<BaseRule> make_base(const std::string& text, const BaseOptions& options = {});

/// A fit at a mode. 0 stands for the rule's own choice.
struct ModeOptions {
  double widening = 1;              ///< of standard deviations
  int64_t rounds = 0;               ///< of Newton's method to one mode
  int64_t starts = 0, batches = 0;  ///< of a search for all modes: starts of a batch
};
using MapOfTarget = std::function<AffineMap(const Target&)>;  ///< needs no fit
std::unique_ptr<BaseRule> make_given(MapOfTarget map);
std::unique_ptr<BaseRule> make_laplace(const ModeOptions& options = {});
std::unique_ptr<BaseRule> make_modes(const ModeOptions& options = {}, const BaseOptions& of = {});

/// The normals nearest to the target from those of another rule.
struct NearestOptions {
  double widening = 1;
  int64_t rounds = 2, pairs = 8;                  ///< of Newton's method; of draws
  bool with_curvatures = true, observed = false;  ///< else means alone; by gradients of 2 D draws
};
std::unique_ptr<BaseRule> make_variational(std::unique_ptr<BaseRule> from,
                                           const NearestOptions& options = {});

/// The base of one problem, or bases of several problems, joined to one. Costs add up.
Base together(const std::vector<Base>& fits);

/// The start of a fit: the target's amortised base, else its prior's base.
AffineMap first_guess(const Target& target);

/// N(loc, (A A^T)^-1) of each problem, from precisions H = A A^T [P,D,D] in float64. If H is
/// indefinite, its eigenvalues are replaced by their absolute values, floored at 1e-6 of the
/// largest. If H is not finite or zero, the problem is marked in `failed`.
struct Factored {
  at::Tensor covariance_root;  // [P,D,D] lower-triangular, root root^T = H^-1
  at::Tensor failed;           // [P] bool
};
Factored factor_precision(const at::Tensor& precision);

/// E_q[log gamma - log q] from draws e [P,K,D] of N(0, I), up to a constant that all q share: [P]
/// nats, float64. `log_density` [P,K] is log gamma at q(e).
at::Tensor evidence_bound(const at::Tensor& log_density, const at::Tensor& e, const AffineMap& q);

/// True if all starts of a search led to one mode, half of the draws from the normal there count,
/// and along its columns the density falls by a nat for each of four standard deviations. Such a
/// density needs no other base. Cost: added, a density for each draw and each of 2 D + 1 points.
bool is_nearly_normal(const Target& one, const Base& base, int64_t draws, at::Generator& rng,
                      Cost& cost);

/// N(loc, matrix matrix^T) for the problems with `take` [P], and `other` for the rest.
AffineMap chosen(const at::Tensor& take, const at::Tensor& loc, const at::Tensor& matrix,
                 const AffineMap& other);

}  // namespace crais
