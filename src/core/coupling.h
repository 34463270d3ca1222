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
/// s is linear on both sides of smooth knees, which are where affine functions t of x are 0. m has
/// a step at each knee, and functions of one coordinate each, quadratic near loc and linear far
/// away. L is strictly lower-triangular. If log tau is in a, then s can undo the neck of a
/// hierarchical model, whose effects have the scale tau about their mean: data on an effect bend s
/// where they say more of it than tau does, and its mean steps there. Immutable.
///                                                                  [Dinh et al. 2017, eq. 7]
class Coupling : public Bijection {
 public:
  /// `dependent` [b] and `others` [a], int64, are all D coordinates. `loc` and `scale` are [a],
  /// `links` L [b,b]. `knees` [k,1+a] has the weights of 1 and x in t, `mean` [b,1+2a+k] those of
  /// 1, x, bow(x) and step(t), `log_scale` [b,1+a+k] those of 1, x and knee(t). exp(s) is at
  /// most e^20 times as large or small as at loc.
  Coupling(at::Tensor dependent, at::Tensor others, at::Tensor loc, at::Tensor scale,
           at::Tensor links, at::Tensor knees, at::Tensor mean, at::Tensor log_scale);

  /// x^2 for |x| <= 4, and tangents beyond: a heavy tail of x squared would be too heavy.
  static at::Tensor bow(const at::Tensor& x);
  /// A function of slope -1 far below 0 and of slope 0 far above.
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
    at::Tensor x, t, mean, log_scale;  // [...,a], [...,k], [...,b], [...,b]
  };
  Conditional given(const at::Tensor& a) const;
  /// Coordinates a and b in their places: [...,D].
  at::Tensor joined(const at::Tensor& a, const at::Tensor& b) const;

  at::Tensor dependent_, others_;
  at::Tensor order_;  // [D] int64: where each coordinate is in (a, b)
  at::Tensor loc_, scale_, links_, knees_, mean_, log_scale_;
  at::Tensor mix_;     // (I - L)^-1
  at::Tensor at_loc_;  // [b]: what the knees add to s at loc
};

}  // namespace crais
