#include "core/spline.h"

#include <utility>

namespace crais {

/// One piece for each number: where it begins, its width and height, and its slopes at both ends.
/// The number is below the first knot, above the last one, or inside.
struct Spline::Piece {
  at::Tensor u, z, width, height, first, last;
  at::Tensor below, above;  // bool

  at::Tensor mean_slope() const { return height / width; }
  at::Tensor excess() const { return first + last - 2 * mean_slope(); }
  /// The value of the case (below, inside or above the knots) that holds for each number.
  at::Tensor chosen(const at::Tensor& if_below, const at::Tensor& inside,
                    const at::Tensor& if_above) const {
    return at::where(below, if_below, at::where(above, if_above, inside));
  }
};

/// A place x in pieces by u, and the quadratic functions that the spline and its slope divide.
struct Spline::Place {
  Piece piece;
  at::Tensor at, both, mean;  // share of the width before x, that times the rest, mean slope
  at::Tensor bottom, top;     // of the slope (mean / bottom)^2 top; bottom is also the spline's

  Place(Piece in, const at::Tensor& x)
      : piece(std::move(in)),
        at((x - piece.u) / piece.width),
        both(at * (1 - at)),
        mean(piece.mean_slope()),
        bottom(mean + piece.excess() * both),
        top(piece.last * at.square() + 2 * mean * both + piece.first * (1 - at).square()) {}
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

Spline::Place Spline::place_of(const at::Tensor& x) const { return {piece_of(x, u_), x}; }

at::Tensor Spline::to_z(const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Place s = place_of(x);
  const Piece& p = s.piece;
  const at::Tensor inside = p.z + p.height * (s.mean * s.at.square() + p.first * s.both) / s.bottom;
  return replaced(u, p.chosen(p.z + p.first * (x - p.u), inside,
                              p.z + p.height + p.last * (x - p.u - p.width)));
}

at::Tensor Spline::to_u(const at::Tensor& z) const {
  const at::Tensor x = z.index_select(-1, coordinates_);
  const Piece p = piece_of(x, z_);
  // The root in [0, 1] of a quadratic equation, in the form that does not cancel.
  const at::Tensor rise = x - p.z, mean = p.mean_slope(), bent = rise * p.excess();
  const at::Tensor a = p.height * (mean - p.first) + bent, b = p.height * p.first - bent,
                   c = -mean * rise;
  const at::Tensor root = (b.square() - 4 * a * c).clamp_min(0).sqrt();
  return replaced(z, p.chosen(p.u + rise / p.first, p.u + p.width * (-2 * c / (b + root)),
                              p.u + p.width + (rise - p.height) / p.last));
}

at::Tensor Spline::log_abs_det(const at::Tensor& u) const {
  const Place s = place_of(u.index_select(-1, coordinates_));
  const at::Tensor inside = 2 * s.mean.log() + s.top.log() - 2 * s.bottom.log();
  const at::Tensor logs = s.piece.chosen(s.piece.first.log(), inside, s.piece.last.log());
  return logs.to(at::kDouble).sum(-1);
}

at::Tensor Spline::pull_back(const at::Tensor& grad_z, const at::Tensor& u) const {
  const Place s = place_of(u.index_select(-1, coordinates_));
  const Piece& p = s.piece;
  const at::Tensor slope = p.chosen(p.first, (s.mean / s.bottom).square() * s.top, p.last);
  const at::Tensor by_top =
      2 * (p.last * s.at + s.mean * (1 - 2 * s.at) - p.first * (1 - s.at)) / s.top;
  const at::Tensor by_bottom = 2 * p.excess() * (1 - 2 * s.at) / s.bottom;
  const at::Tensor by_log = ((by_top - by_bottom) / p.width).masked_fill(p.below | p.above, 0);
  return replaced(grad_z, grad_z.index_select(-1, coordinates_) * slope + by_log);
}

std::shared_ptr<const Bijection> Spline::to(const at::TensorOptions& options) const {
  return std::make_shared<Spline>(dim_, coordinates_.to(options.dtype(at::kLong)), u_.to(options),
                                  z_.to(options), slope_.to(options));
}

}  // namespace crais
