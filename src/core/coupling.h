/// @file
/// Coordinates whose scale and mean depend on others.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "core/bijection.h"

namespace crais {

/// An affine coupling of the coordinates of one density. Some coordinates b depend on the others a:
///
///     z_a = u_a,   z_b = L(x) z_b + m(x) + exp(s(x)) u_b,   x = (u_a - loc) / scale.
///
/// s is linear on both sides of smooth knees. Each x has one at 0, and each coordinate of b may
/// have its own, where an affine function t of x is 0. m has functions of one coordinate each,
/// quadratic near loc and linear far away. L is strictly lower-triangular. Across its own knee a
/// coordinate's mean turns from one affine function of the other coordinates to another.
///
/// If log tau is in a, then s can undo the neck of a hierarchical model, whose effects have the
/// scale tau about a mean mu: where data say more of an effect than tau does, s bends, and the mean
/// turns from mu to the data. Immutable.                               [Dinh et al. 2017, eq. 7]
class Coupling : public Bijection {
 public:
  /// `dependent` [b] and `others` [a], int64, are all D coordinates. `loc` and `scale` are [a],
  /// `links` L [b,b] where nothing turns. `mean` [b,1+2a] has the weights of 1, x and bow(x), and
  /// `log_scale` [b,1+2a] those of 1, x and knee(x). `knees` [b,1+a] has those of 1 and x in t: s
  /// is less by knee(t). `turns` [2,b,1+a+b] has the weights of (1, x, z_b) step(t) and
  /// (1, x, z_b) bump(t) in the mean. exp(s) is at most e^20 times as large or small as at loc.
  Coupling(at::Tensor dependent, at::Tensor others, at::Tensor loc, at::Tensor scale,
           at::Tensor links, at::Tensor mean, at::Tensor log_scale, at::Tensor knees,
           at::Tensor turns);

  /// x^2 for |x| <= 4, and tangents beyond: a heavy tail of x squared would be too heavy.
  static at::Tensor bow(const at::Tensor& x);
  /// 0 at 0, of slope -1 far below and of slope 0 far above.
  static at::Tensor knee(const at::Tensor& x);
  /// From 0 far below 0 to 1 far above: 1 and the slope of the knee.
  static at::Tensor step(const at::Tensor& x);
  /// 1 at 0, and 0 far away: where a knee is.
  static at::Tensor bump(const at::Tensor& x);

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
    at::Tensor x, t;                 // [...,a] and [...,b]
    std::vector<at::Tensor> turned;  // step(t) and bump(t), [...,b]; empty if no mean turns
    at::Tensor mean;                 // [...,b]: without links
    at::Tensor log_scale;            // [...,b]
    at::Tensor is_bounded;           // [...,b] bool: the log-scale ends here
  };
  Conditional given(const at::Tensor& a) const;
  /// b = L(x) b + apart, and by the transpose of its solution.
  at::Tensor linked(const at::Tensor& apart, const std::vector<at::Tensor>& turned) const;
  at::Tensor pulled_through_links(const at::Tensor& grad,
                                  const std::vector<at::Tensor>& turned) const;
  /// Coordinates a and b in their places: [...,D].
  at::Tensor joined(const at::Tensor& a, const at::Tensor& b) const;

  at::Tensor dependent_, others_;
  at::Tensor order_;  // [D] int64: where each coordinate is in (a, b)
  at::Tensor loc_, scale_, links_, mean_, log_scale_, knees_, turns_;
  bool means_turn_, links_turn_;
  at::Tensor mix_;     // (I - L)^-1, if links do not turn
  at::Tensor by_row_;  // [b,3,b]: weights of earlier coordinates: of 1, step and bump
  at::Tensor at_loc_;  // [b]: what its knee adds to s at loc
};

}  // namespace crais
