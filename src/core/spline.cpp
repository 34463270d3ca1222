#include "core/spline.h"

#include <utility>

namespace crais {

/// One piece for each number: where it begins, its width and height, and its slopes at both ends.
/// x is below the first knot or above the last one in `outside`.
struct Spline::Piece {
  at::Tensor u, z, width, height, first, last;
  at::Tensor below, above;  // bool

  at::Tensor outside() const { return below | above; }
  at::Tensor mean_slope() const { return height / width; }
  at::Tensor excess() const { return first + last - 2 * mean_slope(); }
};

Spline::Spline(int64_t dim, at::Tensor coordinates, at::Tensor u, at::Tensor z, at::Tensor slope)
    : dim_(dim),
      coordinates_(std::move(coordinates)),
      u_(std::move(u)),
      z_(std::move(z)),
      slope_(std::move(slope)) {
  TORCH_CHECK(u_.dim() == 2 && u_.size(0) == coordinates_.size(0) && u_.size(1) >= 2 &&
                  u_.sizes() == z_.sizes() && u_.sizes() == slope_.sizes(),
              "spline: the knots do not fit ", coordinates_.size(0), " coordinates");
  TORCH_CHECK((u_.diff() > 0).all().item<bool>() && (z_.diff() > 0).all().item<bool>() &&
                  (slope_ > 0).all().item<bool>(),
              "spline: knots must ascend, and slopes be positive");
}

Spline::Piece Spline::piece_of(const at::Tensor& x, const at::Tensor& knots) const {
  const int64_t coordinates = knots.size(0), pieces = knots.size(1) - 1;
  const at::Tensor columns = x.reshape({-1, coordinates}).t().contiguous();  // [C,N]
  const at::Tensor place = at::searchsorted(knots, columns) - 1;
  const at::Tensor index = place.clamp(0, pieces - 1);
  const auto at_knot = [&](const at::Tensor& table, int64_t offset) {
    return table.gather(1, index + offset).t().view(x.sizes());
  };
  const at::Tensor u = at_knot(u_, 0), z = at_knot(z_, 0);
  return {u,
          z,
          at_knot(u_, 1) - u,
          at_knot(z_, 1) - z,
          at_knot(slope_, 0),
          at_knot(slope_, 1),
          (place < 0).t().view(x.sizes()),
          (place >= pieces).t().view(x.sizes())};
}

at::Tensor Spline::replaced(const at::Tensor& x, const at::Tensor& part) const {
  return x.index_copy(-1, coordinates_, part);
}

at::Tensor Spline::to_z(const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Piece p = piece_of(x, u_);
  const at::Tensor at = (x - p.u) / p.width, both = at * (1 - at), mean = p.mean_slope();
  const at::Tensor inside =
      p.z + p.height * (mean * at.square() + p.first * both) / (mean + p.excess() * both);
  const at::Tensor below = p.z + p.first * (x - p.u),
                   above = p.z + p.height + p.last * (x - p.u - p.width);
  return replaced(u, at::where(p.below, below, at::where(p.above, above, inside)));
}

at::Tensor Spline::to_u(const at::Tensor& z) const {
  const at::Tensor x = z.index_select(-1, coordinates_);
  const Piece p = piece_of(x, z_);
  // The root in [0, 1] of a quadratic equation, in the form that does not cancel.
  const at::Tensor rise = x - p.z, mean = p.mean_slope(), bent = rise * p.excess();
  const at::Tensor a = p.height * (mean - p.first) + bent, b = p.height * p.first - bent,
                   c = -mean * rise;
  const at::Tensor root = (b.square() - 4 * a * c).clamp_min(0).sqrt();
  const at::Tensor inside = p.u + p.width * (-2 * c / (b + root));
  const at::Tensor below = p.u + rise / p.first, above = p.u + p.width + (rise - p.height) / p.last;
  return replaced(z, at::where(p.below, below, at::where(p.above, above, inside)));
}

at::Tensor Spline::log_abs_det(const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Piece p = piece_of(x, u_);
  const at::Tensor at = (x - p.u) / p.width, both = at * (1 - at), mean = p.mean_slope();
  const at::Tensor top = p.last * at.square() + 2 * mean * both + p.first * (1 - at).square();
  const at::Tensor inside = 2 * mean.log() + top.log() - 2 * (mean + p.excess() * both).log();
  const at::Tensor logs =
      at::where(p.below, p.first.log(), at::where(p.above, p.last.log(), inside));
  return logs.to(at::kDouble).sum(-1);
}

at::Tensor Spline::pull_back(const at::Tensor& grad_z, const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Piece p = piece_of(x, u_);
  const at::Tensor at = (x - p.u) / p.width, both = at * (1 - at), mean = p.mean_slope();
  const at::Tensor top = p.last * at.square() + 2 * mean * both + p.first * (1 - at).square(),
                   bottom = mean + p.excess() * both;
  const at::Tensor slope =
      at::where(p.below, p.first, at::where(p.above, p.last, (mean / bottom).square() * top));
  const at::Tensor by_top = 2 * (p.last * at + mean * (1 - 2 * at) - p.first * (1 - at)) / top,
                   by_bottom = 2 * p.excess() * (1 - 2 * at) / bottom;
  const at::Tensor by_log = ((by_top - by_bottom) / p.width).masked_fill(p.outside(), 0);
  return replaced(grad_z, grad_z.index_select(-1, coordinates_) * slope + by_log);
}

std::shared_ptr<const Bijection> Spline::to(const at::TensorOptions& options) const {
  return std::make_shared<Spline>(dim_, coordinates_.to(options.dtype(at::kLong)), u_.to(options),
                                  z_.to(options), slope_.to(options));
}

}  // namespace crais
