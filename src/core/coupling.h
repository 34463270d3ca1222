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
/// s is linear on both sides of smooth knees. Each x has one at 0, and each coordinate of b may
/// have its own, where an affine function t of x is 0. m has functions of one coordinate each,
/// quadratic near loc and linear far away, and a step of each coordinate across its own knee.
///
/// If log tau is in a, then s can undo the funnel of a hierarchical model, whose effects have the
/// scale tau: where data say more of an effect than tau does, s bends, and the mean steps from that
/// of the prior to that of the data. Immutable.                        [Dinh et al. 2017, eq. 7]
class Coupling : public Bijection {
 public:
  /// `dependent` [b] and `others` [a], int64, are all D coordinates. `loc` and `scale` are [a],
  /// `links` is L [b,b], strictly lower-triangular, or empty. `mean` [b,1+2a] has the weights of 1,
  /// x and bow(x), and `log_scale` [b,1+2a] those of 1, x and knee(x). `knees` [b,1+a] has those of
  /// 1 and x in t: s is less by knee(t). `steps` [b] has the weights of step(t) in the mean. exp(s)
  /// is at most e^20 times as large or small as at loc.
  Coupling(at::Tensor dependent, at::Tensor others, at::Tensor loc, at::Tensor scale,
           at::Tensor links, at::Tensor mean, at::Tensor log_scale, at::Tensor knees,
           at::Tensor steps);

  /// x^2 for |x| <= 4, and tangents beyond: a heavy tail of x squared would be too heavy.
  static at::Tensor bow(const at::Tensor& x);
  /// 0 at 0, of slope -1 far below and of slope 0 far above.
  static at::Tensor knee(const at::Tensor& x);
  /// From 0 far below 0 to 1 far above: 1 and the slope of the knee.
  static at::Tensor step(const at::Tensor& x);

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
    at::Tensor x, t;             // [...,a] and [...,b]
    at::Tensor mean, log_scale;  // [...,b]: without links
    at::Tensor is_bounded;       // [...,b] bool: the log-scale ends here
  };
  Conditional given(const at::Tensor& a) const;
  /// Coordinates a and b in their places: [...,D].
  at::Tensor joined(const at::Tensor& a, const at::Tensor& b) const;

  at::Tensor dependent_, others_;
  at::Tensor order_;  // [D] int64: where each coordinate is in (a, b)
  at::Tensor loc_, scale_, links_, mean_, log_scale_, knees_, steps_;
  at::Tensor mix_;     // (I - L)^-1
  at::Tensor at_loc_;  // [b]: what its knee adds to s at loc
};

}  // namespace crais
