#include "paths/tilt.h"

#include <algorithm>
#include <utility>

namespace crais {
namespace {

/// Limits the slopes at nodes so that the cubics between them rise, given the mean slope d of each
/// cell: at most 3 d for h and, with 1 - w and 1 - d, for kappa - h.       [Fritsch & Carlson 1980]
at::Tensor cut(const at::Tensor& w, const at::Tensor& mean_slope) {
  const auto sides = [](const at::Tensor& x) {  // both cells of each node; outer cells repeat
    return std::pair{at::cat({x.slice(1, 0, 1), x}, 1), at::cat({x, x.slice(1, -1)}, 1)};
  };
  const auto [left, right] = sides(mean_slope);
  const at::Tensor most = (3 * at::minimum(left, right)).clamp(0, 1);
  const at::Tensor least = (3 * at::maximum(left, right) - 2).clamp(0, 1);
  return at::minimum(at::maximum(w, least), most);
}

// The formulas below are written once, for tensors and for numbers.
at::Tensor clamped(const at::Tensor& x) { return x.clamp(0, 1); }
double clamped(double x) { return std::clamp(x, 0.0, 1.0); }

/// w x, and 0 where w is 0, even if x is infinite.
at::Tensor times(const at::Tensor& w, const at::Tensor& x) { return at::where(w == 0, 0.0, w * x); }
double times(double w, double x) { return w == 0 ? 0.0 : w * x; }

template <typename Number>
struct Cell {
  Number x0, width, h0, h1, w0, w1;  // its start, its width, and values and slopes at its nodes
};

/// h and its slope at kappa. Outside the cell, linear with the slope of the nearer node.
template <typename Number>
std::pair<Number, Number> cubic(const Cell<Number>& cell, const Number& kappa) {
  const auto& [x0, width, h0, h1, w0, w1] = cell;
  const Number place = (kappa - x0) / width, t = clamped(place);
  const Number rise = (h1 - h0) / width, bend = w0 + w1 - 2 * rise;
  const Number slope_change = 3 * rise - 2 * w0 - w1;
  const Number inside = h0 + width * t * (w0 + t * (slope_change + t * bend));
  const Number w = clamped(w0 + t * (2 * slope_change + 3 * t * bend));
  return {inside + times(w, (place - t) * width), w};
}

template <typename Point, typename Number>
Point mixed(const Number& part, const Point& from, const Point& to) {
  return {times(1 - part, from.h) + times(part, to.h), (1 - part) * from.w + part * to.w};
}

}  // namespace

Tilts Tilts::flat(const at::Tensor& low, const at::Tensor& high, int64_t nodes) {
  const at::Tensor fraction = at::linspace(0, 1, nodes, low.options());
  const at::Tensor kappa = at::lerp(low.unsqueeze(1), high.unsqueeze(1), fraction);
  return {kappa, at::zeros_like(kappa), at::zeros_like(kappa)};
}

Tilts Tilts::through(const at::Tensor& kappa, const at::Tensor& h, const at::Tensor& w) {
  return {kappa, h, cut(w, (h.diff(1, 1) / kappa.diff(1, 1)).clamp(0, 1))};
}

TiltPoint evaluate(const Tilts& tilts, const at::Tensor& kappa) {
  const int64_t last = tilts.kappa.size(1) - 1;
  const at::Tensor right =
      at::searchsorted(tilts.kappa, kappa.detach().contiguous()).clamp(1, last);
  const at::Tensor left = right - 1;
  const auto at_node = [](const at::Tensor& values, const at::Tensor& node) {
    return values.gather(1, node);
  };
  const at::Tensor x0 = at_node(tilts.kappa, left);
  const auto [h, w] =
      cubic<at::Tensor>({x0, at_node(tilts.kappa, right) - x0, at_node(tilts.h, left),
                         at_node(tilts.h, right), at_node(tilts.w, left), at_node(tilts.w, right)},
                        kappa);
  return {h, w};
}

TiltNumber evaluate(const Tilts& tilts, int64_t row, double kappa) {
  const int64_t nodes = tilts.kappa.size(1), first = row * nodes;
  const double *x = tilts.kappa.data_ptr<double>() + first, *h = tilts.h.data_ptr<double>() + first,
               *w = tilts.w.data_ptr<double>() + first;
  const int64_t right =
      std::clamp<int64_t>(std::lower_bound(x, x + nodes, kappa) - x, 1, nodes - 1);
  const int64_t left = right - 1;
  const auto [value, slope] =
      cubic<double>({x[left], x[right] - x[left], h[left], h[right], w[left], w[right]}, kappa);
  return {value, slope};
}

TiltPoint mix(const at::Tensor& part, const TiltPoint& from, const TiltPoint& to) {
  return mixed(part, from, to);
}
TiltNumber mix(double part, const TiltNumber& from, const TiltNumber& to) {
  return mixed(part, from, to);
}

}  // namespace crais
