#include "samplers/blocks.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace crais {
namespace {

/// The number of times that `rows` vectors of `dim` fit into a tensor of about a million numbers.
int64_t per_block(int64_t rows, int64_t dim) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  return std::max<int64_t>(1, kNumbers / (rows * dim));
}

/// Runs blocks of chains one after another, and joins them to one run.
AnnealResult in_blocks(int64_t num_particles, int64_t block, bool keep_particles,
                       const std::function<AnnealResult(int64_t)>& run) {
  if (num_particles <= block) return run(num_particles);
  AnnealResult all;
  std::vector<at::Tensor> log_w, roots, particles;
  for (int64_t begin = 0; begin < num_particles; begin += block) {
    const int64_t size = std::min(block, num_particles - begin);
    AnnealResult part = run(size);
    log_w.push_back(part.log_w);
    if (keep_particles) particles.push_back(part.particles.e);
    if (part.genealogy.roots.defined()) roots.push_back(part.genealogy.roots + begin);
    const at::Tensor accepted = part.accept_prob * static_cast<double>(size);
    all.accept_prob = begin == 0 ? accepted : all.accept_prob + accepted;
    all.num_nonfinite += part.num_nonfinite;
    all.cost += part.cost;
    all.betas = part.betas;
    all.step_sizes = part.step_sizes;
    all.genealogy.num_resamplings = part.genealogy.num_resamplings;  // zero
  }
  all.accept_prob = all.accept_prob / static_cast<double>(num_particles);
  all.log_w = at::cat(log_w, 1);
  if (keep_particles) all.particles.e = at::cat(particles, 1);
  if (!roots.empty()) all.genealogy.roots = at::cat(roots, 1);
  return all;
}

/// Runs blocks of problems one after another, and joins them to one run: the chains of a problem
/// stay together.
AnnealResult by_problems(const Problem& problem, const Plan& plan, int64_t block,
                         bool keep_particles,
                         const std::function<AnnealResult(const Problem&, const Plan&)>& run) {
  const int64_t num_problems = problem.num_problems();
  if (num_problems <= block) return run(problem, plan);
  AnnealResult all;
  std::vector<at::Tensor> log_w, roots, particles, num_resamplings, betas, step_sizes, accept_prob;
  for (int64_t begin = 0; begin < num_problems; begin += block) {
    const at::Tensor index = at::arange(begin, std::min(begin + block, num_problems),
                                        problem.base().options().dtype(at::kLong));
    const AnnealResult part = run(problem.select(index), select(plan, index));
    log_w.push_back(part.log_w);
    if (keep_particles) particles.push_back(part.particles.e);
    roots.push_back(part.genealogy.roots);
    num_resamplings.push_back(part.genealogy.num_resamplings);
    all.genealogy.independent_draws = part.genealogy.independent_draws;
    betas.push_back(part.betas);
    step_sizes.push_back(part.step_sizes);
    accept_prob.push_back(part.accept_prob);
    all.num_nonfinite += part.num_nonfinite;
    all.cost += part.cost;
  }
  all.log_w = at::cat(log_w);
  if (keep_particles) all.particles.e = at::cat(particles);
  all.genealogy.roots = at::cat(roots);
  all.genealogy.num_resamplings = at::cat(num_resamplings);
  all.betas = at::cat(betas, 1);
  all.step_sizes = at::cat(step_sizes, 1);
  all.accept_prob = at::cat(accept_prob, 1);
  return all;
}

}  // namespace

int64_t chains_per_block(int64_t num_problems, int64_t dim) { return per_block(num_problems, dim); }

int64_t chains_per_stream(int64_t num_problems, int64_t dim) {
  constexpr int64_t kNumbers = int64_t{1} << 15, kGrain = 16;
  return kGrain * std::max<int64_t>(1, (kNumbers / (num_problems * dim) + kGrain - 1) / kGrain);
}

AnnealResult anneal_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                              const Transition& transition, int64_t num_particles,
                              at::Generator& rng, const Resampling* resampling,
                              bool keep_particles) {
  if (resampling) {
    const int64_t block = per_block(num_particles, problem.dim());
    return by_problems(
        problem, plan, block, keep_particles, [&](const Problem& part, const Plan& its_plan) {
          return anneal(part, path, its_plan, transition, num_particles, rng, resampling);
        });
  }
  const int64_t block = chains_per_block(problem.num_problems(), problem.dim());
  return in_blocks(num_particles, block, keep_particles, [&](int64_t size) {
    return anneal(problem, path, plan, transition, size, rng);
  });
}

AnnealResult anneal_reverse_in_blocks(const Problem& problem, const Path& path, const Plan& plan,
                                      const Transition& transition, int64_t num_particles,
                                      at::Generator& rng, const at::Tensor& z) {
  const int64_t block = chains_per_block(problem.num_problems(), problem.dim());
  int64_t begin = 0;
  return in_blocks(num_particles, block, /*keep_particles=*/false, [&](int64_t size) {
    begin += size;
    return z.defined() ? anneal_reverse(problem, path, plan, transition,
                                        z.slice(1, begin - size, begin), rng)
                       : anneal_reverse(problem, path, plan, transition, size, rng);
  });
}

}  // namespace crais
