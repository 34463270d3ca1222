#include "samplers/blocks.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace crais {
namespace {

AnnealResult in_blocks(int64_t num_particles, int64_t block,
                       const std::function<AnnealResult(int64_t)>& run) {
  if (num_particles <= block) return run(num_particles);
  AnnealResult all;
  std::vector<at::Tensor> log_w, roots;
  for (int64_t begin = 0; begin < num_particles; begin += block) {
    const int64_t size = std::min(block, num_particles - begin);
    AnnealResult part = run(size);
    log_w.push_back(part.log_w);
    if (part.genealogy.roots.defined()) roots.push_back(part.genealogy.roots + begin);
    const at::Tensor accepted = part.accept_prob * static_cast<double>(size);
    all.accept_prob = begin == 0 ? accepted : all.accept_prob + accepted;
    all.num_nonfinite += part.num_nonfinite;
    all.betas = part.betas;
    all.step_sizes = part.step_sizes;
    all.genealogy.num_resamplings = part.genealogy.num_resamplings;  // none
  }
  all.accept_prob = all.accept_prob / static_cast<double>(num_particles);
  all.log_w = at::cat(log_w, 1);
  if (!roots.empty()) all.genealogy.roots = at::cat(roots, 1);
  return all;
}

}  // namespace

int64_t chains_per_block(int64_t num_problems, int64_t dim) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  return std::max<int64_t>(1, kNumbers / (num_problems * dim));
}

AnnealResult anneal_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                              const Transition& transition, int64_t num_particles,
                              at::Generator& rng, const Resampling* resampling) {
  const int64_t block =
      resampling ? num_particles : chains_per_block(problem.num_problems(), problem.dim());
  return in_blocks(num_particles, block, [&](int64_t size) {
    return anneal(problem, path, plan, transition, size, rng, resampling);
  });
}

AnnealResult anneal_back_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                                   const Transition& transition, int64_t num_particles,
                                   at::Generator& rng) {
  const int64_t block = chains_per_block(problem.num_problems(), problem.dim());
  return in_blocks(num_particles, block, [&](int64_t size) {
    return anneal_back(problem, path, plan, transition, size, rng);
  });
}

}  // namespace crais
