#include "programs/plane.h"

#include <algorithm>

#include "core/rng.h"
#include "evaluation/chunk_result.h"
#include "samplers/resampling.h"

namespace crais {

at::Tensor thinned(const at::Tensor& z, const at::Tensor& log_w, int64_t count, uint64_t seed) {
  at::Generator rng = make_generator(derive_seed(seed, Purpose::kResample));
  const at::Tensor index = ResamplingRegistry::instance()
                               .make("resampling", "systematic")
                               ->ancestors(log_w.unsqueeze(0), rng)
                               .squeeze(0);
  const at::Tensor positions =
      at::linspace(0, static_cast<double>(index.size(0) - 1), count, at::kDouble).round();
  return z.to(at::kDouble).index_select(0, index.index_select(0, positions.to(at::kLong)));
}

Window window_around(const at::Tensor& z) {
  constexpr double kOutside = 0.005, kRoom = 0.3;  // share outside each side; margin over range
  const auto side = [&](int64_t axis) {
    const at::Tensor sorted = std::get<0>(z.select(1, axis).sort());
    const auto last = static_cast<double>(sorted.size(0) - 1);
    const auto low = sorted[static_cast<int64_t>(kOutside * last)].item<double>();
    const auto high = sorted[static_cast<int64_t>((1 - kOutside) * last)].item<double>();
    const double room = std::max(kRoom * (high - low), 1e-3);
    return std::pair(low - room, high + room);
  };
  const auto [left, right] = side(0);
  const auto [bottom, top] = side(1);
  return {left, right, bottom, top};
}

Contours contours_of(const Target& target, const Window& w) {
  constexpr int64_t kGrid = 121;
  const at::Tensor x = at::linspace(w.left, w.right, kGrid, at::kDouble);
  const at::Tensor y = at::linspace(w.bottom, w.top, kGrid, at::kDouble);
  const at::Tensor z =
      at::stack({x.unsqueeze(0).expand({kGrid, kGrid}), y.unsqueeze(1).expand({kGrid, kGrid})}, -1)
          .reshape({1, kGrid * kGrid, 2});
  const at::Tensor log_density =
      target.slice(0, 1)->log_density(z.to(target.options())).to(at::kCPU, at::kDouble).flatten();
  const at::Tensor density = (log_density - log_density.max()).exp();
  const at::Tensor sorted = std::get<0>(density.sort(0, /*descending=*/true));
  const at::Tensor held = sorted.cumsum(0) / sorted.sum();
  Contours contours{static_cast<size_t>(kGrid), to_column(density), {}};
  for (const double share : {0.95, 0.5}) {
    const int64_t place = (held < share).sum().item<int64_t>();
    contours.levels.push_back(sorted[std::min(place, kGrid * kGrid - 1)].item<double>());
  }
  return contours;
}

}  // namespace crais
