/// @file
/// f-divergences D_f(pi || q) = E_q[f(pi / q)], for the constant-rate rule and for annealing paths.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "core/registry.h"

namespace crais {

/// One f-divergence. f is convex with f(1) = f'(1) = 0 (a term c (u - 1) changes no D_f) and is
/// given as functions of log u, u = pi / q. Steepest descent of D_f over q moves log q by g(u) = u
/// f'(u) - f(u), and D_f falls at the rate Var_q[g(u)].   [the CR-AIS paper]
///
/// All functions are elementwise. They take float64 from -inf to a few hundred without overflow.
/// Immutable: threads may share an object. A divergence is one file:
///
///     class Pearson : public crais::Divergence {  // f(u) = (u - 1)^2
///       at::Tensor f(const at::Tensor& log_u) const override { return log_u.expm1().square(); }
///       at::Tensor g(const at::Tensor& log_u) const override { return (2 * log_u).expm1(); }
///       at::Tensor slope(const at::Tensor& log_u) const override { return 2 * (2 * log_u).exp(); }
///     };
class Divergence {
 public:
  virtual ~Divergence() = default;

  virtual at::Tensor f(const at::Tensor& log_u) const = 0;
  /// u f'(u) - f(u), which rises with u and is 0 at u = 1.
  virtual at::Tensor g(const at::Tensor& log_u) const = 0;
  /// dg/dlog u = u^2 f''(u) >= 0.
  virtual at::Tensor slope(const at::Tensor& log_u) const = 0;
  /// alpha, if this is the alpha divergence with g(u) = (u^alpha - 1) / alpha.
  virtual std::optional<double> order() const { return {}; }

  /// log Var_q[g(u)] over particles from q: u = e^kappa / r, r = E[e^kappa].
  ///
  /// @param kappa             [P,K] float64, log pi - log q up to a constant.
  /// @param variance_weights  [P,K] normalised log-weights of the variance.
  /// @param ratio_weights     [P,K] normalised log-weights of r.
  /// @return                  [P]; -inf if g is constant.
  virtual at::Tensor log_variance(const at::Tensor& kappa, const at::Tensor& variance_weights,
                                  const at::Tensor& ratio_weights) const {
    const at::Tensor log_r = at::logsumexp(ratio_weights + kappa, -1, /*keepdim=*/true);
    const at::Tensor values = g(kappa - log_r), w = variance_weights.exp();
    const at::Tensor mean = (w * values).sum(-1, /*keepdim=*/true);
    return (w * (values - mean).square()).sum(-1).log();
  }
};

using DivergenceRegistry = Registry<Divergence>;

}  // namespace crais
