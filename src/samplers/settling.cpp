#include "samplers/settling.h"

#include <iterator>
#include <memory>
#include <vector>

#include "core/problem.h"
#include "samplers/resampling.h"

namespace crais {

namespace {

constexpr int kMoves = 10;  // moves of a sweep

}  // namespace

at::Tensor resampled(const at::Tensor& z, const at::Tensor& log_w, int64_t count,
                     at::Generator& rng) {
  return z.index_select(0, systematic_ancestors(log_w.unsqueeze(0), count, rng).squeeze(0));
}

int64_t settling_evaluations(const Transition& transition, int64_t sweeps) {
  return sweeps * (1 + kMoves * transition.evaluations_per_step());
}

Settled settle(const PartitionedTarget& parts, const AffineMap& normals, const at::Tensor& z,
               const at::Tensor& step_sizes, const Transition& transition, int64_t sweeps,
               at::Generator& rng) {
  constexpr double kLadder[] = {1, 1, 0.3, 3};  // factors of step sizes
  // All paths agree at beta = 1.
  const auto path = PathRegistry::instance().make("path", "geometric");
  const int64_t count = normals.num_problems();
  const at::Tensor first = at::zeros({1}, step_sizes.options().dtype(at::kLong));
  const auto whole = std::static_pointer_cast<const PartitionedTarget>(parts.select(first));
  Settled found{z, {}, {}, {}};
  at::Tensor log_steps = step_sizes.log();
  std::vector<at::Tensor> passed;
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    const at::Tensor label =
        draw_labels(whole->log_components(found.z.unsqueeze(0)), rng).squeeze(0);
    const AffineMap map = normals.select(label);
    const Problem problem(parts.select(label), map);
    Particles particles = problem.evaluate(map.to_e(found.z.unsqueeze(1)));
    found.cost += problem.cost_of(1);
    const at::Tensor beta = at::ones({found.z.size(0)}, log_steps.options());
    for (int move = 0; move < kMoves; ++move) {
      const double scale = kLadder[move % std::size(kLadder)];
      const at::Tensor steps = log_steps.exp().index_select(0, label) * scale;
      const Moved moved = transition.step(problem, *path, particles, beta, steps, rng);
      particles = moved.particles;
      found.cost += problem.cost_of(transition.evaluations_per_step());
      if (scale != 1) continue;
      const at::Tensor arrivals = at::bincount(label, {}, count).to(at::kDouble);
      const at::Tensor accepted =
          at::zeros_like(log_steps).scatter_add(0, label, moved.accept_prob.flatten());
      const at::Tensor apart = accepted / arrivals.clamp_min(1) - transition.target_acceptance();
      log_steps = log_steps + 0.5 * at::where(arrivals > 0, apart, at::zeros_like(apart));
    }
    found.z = map.to_z(particles.e).squeeze(1);
    if (sweep > 0) passed.push_back(found.z);
  }
  if (!passed.empty()) found.passed = at::cat(passed);
  found.step_sizes = log_steps.exp();
  return found;
}

}  // namespace crais
