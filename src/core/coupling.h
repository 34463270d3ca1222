/// @file
/// Coordinates whose scale and mean depend on others.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "core/bijection.h"

namespace crais {

/// An affine coupling of the coordinates of one density. Some coordinates b depend on the others a:
///
///     z_a = u_a,   z_b = L z_b + m(x) + exp(s(x)) u_b,   x = (u_a - loc) / scale.
///
/// m is a sum of functions of one coordinate each, quadratic near loc and linear far away, and s of
/// functions that are linear on both sides of a smooth knee. L is strictly lower-triangular. If log
/// tau is in a, then s can undo the neck of a hierarchical model, whose effects have the scale tau
/// about their mean. Immutable.                                     [Dinh et al. 2017, eq. 7]
class Coupling : public Bijection {
 public:
  /// `dependent` [b] and `others` [a], int64, are all D coordinates. `loc` and `scale` are [a],
  /// `links` L [b,b]. `mean` [b,1+2a] has the weights of 1, x and bow(x), `log_scale` [b,1+2a]
  /// those of 1, x and knee(x). exp(s) changes by a factor of e^20 at most.
  Coupling(at::Tensor dependent, at::Tensor others, at::Tensor loc, at::Tensor scale,
           at::Tensor links, at::Tensor mean, at::Tensor log_scale);

  /// x^2 for |x| <= 4, and tangents beyond: a heavy tail of x squared would be too heavy.
  static at::Tensor bow(const at::Tensor& x);
  /// A function of slope -1 far below 0 and of slope 0 far above.
  static at::Tensor knee(const at::Tensor& x);

  int64_t dim() const override { return order_.size(0); }
  /// [D] bool: the coordinates on which scales of others depend.
  at::Tensor drives() const;

  at::Tensor to_z(const at::Tensor& u) const override;
  at::Tensor to_u(const at::Tensor& z) const override;
  at::Tensor log_abs_det(const at::Tensor& u) const override;
  at::Tensor pull_back(const at::Tensor& grad_z, const at::Tensor& u) const override;
  std::shared_ptr<const Bijection> to(const at::TensorOptions& options) const override;

 private:
  struct Conditional {
    at::Tensor x, mean, log_scale;  // [...,a], [...,b], [...,b]
  };
  Conditional given(const at::Tensor& a) const;
  /// Coordinates a and b in their places: [...,D].
  at::Tensor joined(const at::Tensor& a, const at::Tensor& b) const;

  at::Tensor dependent_, others_;
  at::Tensor order_;  // [D] int64: where each coordinate is in (a, b)
  at::Tensor loc_, scale_, links_, mean_, log_scale_;
  at::Tensor mix_;  // (I - L)^-1
};

}  // namespace crais
