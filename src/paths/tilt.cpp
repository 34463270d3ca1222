#include "paths/tilt.h"

#include <utility>

namespace crais {
namespace {

/// Slopes at nodes between which a cubic rises, given the mean slope d of each cell: at most 3 d
/// [Fritsch & Carlson 1980], for h and, with 1 - w and 1 - d, for kappa - h.
at::Tensor cut(const at::Tensor& w, const at::Tensor& mean_slope) {
  const auto sides = [](const at::Tensor& x) {  // of each node, the outer cells twice
    return std::pair{at::cat({x.slice(1, 0, 1), x}, 1), at::cat({x, x.slice(1, -1)}, 1)};
  };
  const auto [left, right] = sides(mean_slope);
  const at::Tensor most = (3 * at::minimum(left, right)).clamp(0, 1);
  const at::Tensor least = (3 * at::maximum(left, right) - 2).clamp(0, 1);
  return at::minimum(at::maximum(w, least), most);
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
  const at::Tensor x0 = at_node(tilts.kappa, left), width = at_node(tilts.kappa, right) - x0;
  const at::Tensor h0 = at_node(tilts.h, left), h1 = at_node(tilts.h, right);
  const at::Tensor w0 = at_node(tilts.w, left), w1 = at_node(tilts.w, right);
  const at::Tensor place = (kappa - x0) / width, t = place.clamp(0, 1);
  const at::Tensor rise = (h1 - h0) / width, bend = w0 + w1 - 2 * rise;
  const at::Tensor slope_change = 3 * rise - 2 * w0 - w1;
  const at::Tensor inside = h0 + width * t * (w0 + t * (slope_change + t * bend));
  const at::Tensor w = (w0 + t * (2 * slope_change + 3 * t * bend)).clamp(0, 1);
  // Beyond the nodes at the slope of the last one; 0 times an infinite distance is 0.
  const at::Tensor beyond = (place - t) * width;
  return {inside + at::where(w == 0, 0.0, w * beyond), w};
}

}  // namespace crais
