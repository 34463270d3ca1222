/// @file
/// Monotone splines of single coordinates.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "core/bijection.h"

namespace crais {

/// z_c = S_c(u_c) for some coordinates c, with a monotone rational-quadratic spline S_c through K
/// knots, and linear beyond them. It can make a coordinate with heavy tails, or with several modes
/// of its own, normal.                 [Gregory & Delbourgo 1982; Durkan et al. 2019]
class Spline : public Bijection {
 public:
  /// The splines of `coordinates` [C] int64 among `dim`: knots u and z [C,K], each ascending, and
  /// the slopes dz/du > 0 [C,K] there.
  Spline(int64_t dim, at::Tensor coordinates, at::Tensor u, at::Tensor z, at::Tensor slope);

  int64_t dim() const override { return dim_; }
  at::Tensor to_z(const at::Tensor& u) const override;
  at::Tensor to_u(const at::Tensor& z) const override;
  at::Tensor log_abs_det(const at::Tensor& u) const override;
  at::Tensor pull_back(const at::Tensor& grad_z, const at::Tensor& u) const override;
  std::shared_ptr<const Bijection> to(const at::TensorOptions& options) const override;

 private:
  struct Piece;
  struct Place;
  Place place_of(const at::Tensor& x) const;
  /// The pieces [...,C] in which x, by `knots` u or z, lies.
  Piece piece_of(const at::Tensor& x, const at::Tensor& knots) const;
  at::Tensor replaced(const at::Tensor& x, const at::Tensor& part) const;

  int64_t dim_;
  at::Tensor coordinates_, u_, z_, slope_;
};

}  // namespace crais
