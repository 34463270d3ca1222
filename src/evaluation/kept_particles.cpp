#include "evaluation/kept_particles.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crais {

std::optional<WeightedParticles> kept_particles(const RunResults& results) {
  std::vector<at::Tensor> z, log_w, num_resamplings;
  int64_t most = 0;
  for (const auto& [number, chunk] : results.chunks) {
    const auto& kept = chunk.runs.front().particles;
    if (!kept) return {};
    most = std::max(most, kept->log_w.size(1));
  }
  for (const auto& [number, chunk] : results.chunks) {
    const WeightedParticles& kept = *chunk.runs.front().particles;
    const int64_t count = kept.log_w.size(1), more = most - count;
    const double growth = std::log(static_cast<double>(most) / static_cast<double>(count));
    const at::Tensor points = kept.z.to(at::kCPU, at::kDouble);
    z.push_back(at::cat({points, points.slice(1, 0, 1).expand({-1, more, -1})}, 1));
    log_w.push_back(at::constant_pad_nd(kept.log_w.cpu() + growth, {0, more}, -INFINITY));
    num_resamplings.push_back(kept.num_resamplings.cpu());
  }
  if (z.empty()) return {};
  return WeightedParticles{at::cat(z), at::cat(log_w), at::cat(num_resamplings)};
}

}  // namespace crais
