#include "evaluation/target_error.h"

#include <algorithm>
#include <cmath>

#include "samplers/blocks.h"

namespace crais {

int64_t chains_for(const PilotWeights& pilot, double error, int64_t fewest, int64_t most) {
  const double relative =
      std::max(pilot.std_error * pilot.std_error * static_cast<double>(pilot.num_chains),
               std::expm1(std::min(pilot.log_w_variance, 50.0)));
  const double wanted = 2 * std::max(relative / (error * error), relative / (2 * error));
  int64_t chains = std::max<int64_t>(fewest, 2);
  while (static_cast<double>(chains) < wanted && chains < most) chains *= 2;
  return std::max<int64_t>(2, std::min(chains, most));
}

TargetedRun estimate_to_error(const EstimatorParts& parts, const Method& method,
                              const Problem& problem, const Plan& plan, at::Generator& rng) {
  const AnnealResult pilot =
      anneal_in_blocks(problem, *parts.path, plan, *parts.transition,
                       std::max<int64_t>(plan.num_particles, 8), rng, parts.resampling.get());
  const double error = *parts.options.target_error;
  const auto chain =
      static_cast<double>(parts.evaluations_per_chain(plan.num_steps()) * method.num_anneals());
  const auto most = static_cast<int64_t>(parts.options.max_evaluations / chain);
  const auto std_error = to_column(log_normalizer(pilot.log_w, pilot.genealogy).std_error);
  const auto variance = to_column(pilot.log_w.var(1, /*unbiased=*/true));
  std::map<int64_t, std::vector<int64_t>> groups;  // by the number of chains
  for (size_t i = 0; i < std_error.size(); ++i) {
    const PilotWeights weights{pilot.log_w.size(1), std_error[i], variance[i]};
    groups[chains_for(weights, error, plan.num_particles, most)].push_back(static_cast<int64_t>(i));
  }

  TargetedRun result{{}, pilot.cost};
  for (const auto& [chains, members] : groups) {
    const at::Tensor index = at::tensor(members, at::kLong).to(problem.base().options().device());
    Plan longer = select(plan, index);
    longer.num_particles = chains;
    const Problem part = problem.select(index);
    result.run.scatter(to_run(method.estimate(part, longer, rng), part.num_problems()), members);
  }
  for (size_t i = 0; i < result.run.flags.size(); ++i)
    if (!(result.run.std_error[i] <= error)) result.run.flags[i] |= kMissedTarget;
  return result;
}

}  // namespace crais
