#include "evaluation/chains.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "samplers/blocks.h"

namespace crais {

MethodResult estimate_under(const Plan& plan, const Method& method, const Problem& problem,
                            uint64_t seed) {
  const auto found_by = [&](const Plan& part, uint64_t stream) {
    at::Generator rng = make_counting_generator(stream, problem.base().options().device());
    MethodResult found = method.estimate(problem, part, rng);
    return problem.partition() ? merged(std::move(found), *problem.partition()) : found;
  };
  if (!method.has_independent_chains()) return found_by(plan, seed);
  const int64_t most = chains_per_stream(problem.num_problems(), problem.dim());
  std::vector<MethodResult> blocks;
  Plan part = plan;
  for (int64_t begin = 0; begin < plan.num_particles; begin += most) {
    const size_t number = blocks.size();
    part.num_particles = std::min(most, plan.num_particles - begin);
    blocks.push_back(found_by(part, number == 0 ? seed : mix64(seed ^ number)));
  }
  return joined(blocks);
}

}  // namespace crais
