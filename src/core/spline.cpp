#include "core/spline.h"

#include <cmath>
#include <utility>

namespace crais {
namespace {

/// log of the density of N(0, 1) at v over P(u > v).
at::Tensor log_hazard(const at::Tensor& v) {
  return -0.5 * v.square() - 0.5 * std::log(2 * M_PI) - at::special_log_ndtr(-v);
}

}  // namespace

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

/// The spline beyond its last knots (sign 1) or, mirrored at the origin, its first ones (sign -1).
/// In a heavy tail, P(z > x) is a generalised Pareto distribution's:
///     z - z_K = slope / h(u_K) ((P(u) / P(u_K))^-shape - 1) / shape,  P(u) = P(N(0, 1) > u),
/// with the hazard h of N(0, 1), so that the slope is continuous.
struct Spline::Tail {
  double sign;
  bool may_be_heavy;
  at::Tensor u, z, slope;  // [C], mirrored: of the end knot
  at::Tensor shape;        // [C], and 1 where the tail is a line
  at::Tensor is_heavy;     // [C] bool

  at::Tensor to_z(const at::Tensor& x) const {
    const at::Tensor v = sign * x, line = slope * (v - u);
    const auto heavy = [&] { return scale() * at::expm1(-shape * log_fall(v)) / shape; };
    return sign * (z + heavy_or(line, heavy));
  }
  at::Tensor to_u(const at::Tensor& x) const {
    const at::Tensor rise = sign * x - z;
    const auto heavy = [&] {
      const at::Tensor log_fall = -at::log1p(shape * rise / scale()) / shape;
      return -at::special_ndtri((log_fall + at::special_log_ndtr(-u)).exp());
    };
    return sign * heavy_or(u + rise / slope, heavy);
  }
  at::Tensor log_slope(const at::Tensor& x) const {
    const at::Tensor line = slope.log();
    return heavy_or(line, [&] {
      return line + log_hazard(sign * x) - log_hazard(u) - shape * log_fall(sign * x);
    });
  }
  /// The derivative of the log of the slope.
  at::Tensor bend(const at::Tensor& x) const {
    return heavy_or(at::zeros_like(u),
                    [&] { return sign * ((1 + shape) * log_hazard(sign * x).exp() - sign * x); });
  }

 private:
  at::Tensor scale() const { return slope * (-log_hazard(u)).exp(); }
  at::Tensor log_fall(const at::Tensor& v) const {
    return at::special_log_ndtr(-v) - at::special_log_ndtr(-u);
  }
  template <class Function>
  at::Tensor heavy_or(const at::Tensor& line, const Function& heavy) const {
    return may_be_heavy ? at::where(is_heavy, heavy(), line) : line;
  }
};

Spline::Spline(int64_t dim, at::Tensor coordinates, at::Tensor u, at::Tensor z, at::Tensor slope,
               at::Tensor tails)
    : dim_(dim),
      coordinates_(std::move(coordinates)),
      u_(std::move(u)),
      z_(std::move(z)),
      slope_(std::move(slope)),
      tails_(std::move(tails)),
      has_heavy_tails_((tails_ > 0).any().item<bool>()) {
  TORCH_CHECK(u_.dim() == 2 && u_.size(0) == coordinates_.size(0) && u_.size(1) >= 2 &&
                  u_.sizes() == z_.sizes() && u_.sizes() == slope_.sizes() &&
                  tails_.sizes() == at::IntArrayRef({u_.size(0), 2}),
              "spline: the knots do not fit ", coordinates_.size(0), " coordinates");
  TORCH_CHECK((tails_ >= 0).all().item<bool>(), "spline: shapes of tails must not be negative");
  TORCH_CHECK((u_.diff() > 0).all().item<bool>() && (z_.diff() > 0).all().item<bool>() &&
                  (slope_ > 0).all().item<bool>(),
              "spline: knots must ascend, and slopes be positive");
}

Spline::Tail Spline::tail(Side side) const {
  const int64_t knot = side == Side::kBelow ? 0 : -1;
  const double sign = side == Side::kBelow ? -1 : 1;
  const at::Tensor shape = tails_.select(1, knot), is_heavy = shape > 0;
  return {sign,
          has_heavy_tails_,
          sign * u_.select(1, knot),
          sign * z_.select(1, knot),
          slope_.select(1, knot),
          shape.masked_fill(~is_heavy, 1),
          is_heavy};
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
  return replaced(u, p.chosen(tail(Side::kBelow).to_z(x), inside, tail(Side::kAbove).to_z(x)));
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
  return replaced(z, p.chosen(tail(Side::kBelow).to_u(x), inside, tail(Side::kAbove).to_u(x)));
}

at::Tensor Spline::log_abs_det(const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Place s = place_of(x);
  const at::Tensor inside = 2 * s.mean.log() + s.top.log() - 2 * s.bottom.log();
  const at::Tensor logs =
      s.piece.chosen(tail(Side::kBelow).log_slope(x), inside, tail(Side::kAbove).log_slope(x));
  return logs.to(at::kDouble).sum(-1);
}

at::Tensor Spline::pull_back(const at::Tensor& grad_z, const at::Tensor& u) const {
  const at::Tensor x = u.index_select(-1, coordinates_);
  const Place s = place_of(x);
  const Piece& p = s.piece;
  const at::Tensor slope =
      p.chosen(tail(Side::kBelow).log_slope(x).exp(), (s.mean / s.bottom).square() * s.top,
               tail(Side::kAbove).log_slope(x).exp());
  const at::Tensor by_top =
      2 * (p.last * s.at + s.mean * (1 - 2 * s.at) - p.first * (1 - s.at)) / s.top;
  const at::Tensor by_bottom = 2 * p.excess() * (1 - 2 * s.at) / s.bottom;
  const at::Tensor bend = p.chosen(tail(Side::kBelow).bend(x), (by_top - by_bottom) / p.width,
                                   tail(Side::kAbove).bend(x));
  return replaced(grad_z, grad_z.index_select(-1, coordinates_) * slope + bend);
}

std::shared_ptr<const Bijection> Spline::to(const at::TensorOptions& options) const {
  return std::make_shared<Spline>(dim_, coordinates_.to(options.dtype(at::kLong)), u_.to(options),
                                  z_.to(options), slope_.to(options), tails_.to(options));
}

}  // namespace crais
