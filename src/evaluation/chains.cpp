#include "evaluation/chains.h"

#include <algorithm>
#include <utility>

#include "core/rng.h"
#include "samplers/blocks.h"

namespace crais {

MethodResult estimate_under(const Plan& plan, const Method& method, const Problem& problem,
                            uint64_t seed, const std::vector<ChainBlock>& earlier,
                            std::vector<ChainBlock>& blocks) {
  const c10::Device device = problem.base().options().device();
  const auto found_by = [&](const Plan& part, at::Generator rng) {
    MethodResult found = method.estimate(problem, part, rng);
    return problem.partition() ? merged(std::move(found), *problem.partition()) : found;
  };
  if (!method.has_independent_chains())
    return found_by(plan, make_counting_generator(seed, device));
  const int64_t most = chains_per_stream(problem.num_problems(), problem.dim());
  std::vector<MethodResult> parts;
  Plan part = plan;
  for (int64_t begin = 0; begin < plan.num_particles; begin += most) {
    const size_t number = blocks.size();
    part.num_particles = std::min(most, plan.num_particles - begin);
    if (number < earlier.size() && earlier[number].log_w.size(1) == part.num_particles) {
      blocks.push_back(earlier[number]);
      parts.push_back(result_of(blocks.back()));
      continue;
    }
    MethodResult found =
        found_by(part, make_counting_generator(number == 0 ? seed : mix64(seed ^ number), device));
    blocks.push_back(block_of(found));
    parts.push_back(result_of(blocks.back()));
    parts.back().particles = std::move(found.particles);
  }
  return joined(parts);
}

}  // namespace crais
