#include "evaluation/target_error.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "evaluation/chunk_memory.h"
#include "samplers/blocks.h"

namespace crais {

namespace {

double relative_variance(const PilotWeights& pilot) {
  return pilot.std_error * pilot.std_error * static_cast<double>(pilot.num_chains);
}

/// The most chains of a problem.
int64_t most_chains(const EstimatorParts& parts, const Method& method, const Plan& plan) {
  const auto chain =
      static_cast<double>(parts.evaluations_per_chain(plan.num_steps()) * method.num_anneals());
  return static_cast<int64_t>(parts.options.max_evaluations / chain);
}

}  // namespace

std::vector<PilotWeights> pilot_weights(const at::Tensor& log_w, const Genealogy& genealogy) {
  const auto std_error = to_column(log_normalizer(log_w, genealogy).std_error);
  const auto variance = to_column(log_w.var(1, /*unbiased=*/true));
  std::vector<PilotWeights> pilots;
  for (size_t i = 0; i < std_error.size(); ++i)
    pilots.push_back({log_w.size(1), std_error[i], variance[i]});
  return pilots;
}

int64_t chains_for(const PilotWeights& pilot, double error, int64_t fewest, int64_t most) {
  const double relative =
      std::max(relative_variance(pilot), std::expm1(std::min(pilot.log_w_variance, 50.0)));
  const double wanted = 2 * std::max(relative / (error * error), relative / (2 * error));
  int64_t chains = std::max<int64_t>(fewest, 2);
  while (static_cast<double>(chains) < wanted && chains < most) chains *= 2;
  return std::max<int64_t>(2, std::min(chains, most));
}

int64_t chains_by_spread(const PilotWeights& pilot, double per_spread, int64_t most) {
  const double wanted = per_spread * std::sqrt(relative_variance(pilot));
  int64_t chains = 4;
  while (static_cast<double>(chains) < wanted && chains < most)
    chains = chains % 3 == 0 ? chains / 3 * 4 : chains / 2 * 3;
  return std::max<int64_t>(2, std::min(chains, most));
}

MeanErrorPlan plan_for_mean(const EstimatorParts& parts, const Problem& pilots, const Plan& plan,
                            int64_t num_problems, at::Generator& rng, Cost& cost) {
  constexpr int64_t kMostChoosing = 8, kMeasuring = 12;
  AnnealResult run = anneal_in_blocks(pilots, *parts.path, plan, *parts.transition,
                                      kMostChoosing + kMeasuring, rng);
  cost += run.cost;
  if (pilots.partition()) run.log_w = pilots.partition()->log_sum_exp(run.log_w);
  const auto measuring = pilot_weights(run.log_w.slice(1, kMostChoosing));
  const auto count = static_cast<double>(measuring.size());
  const int64_t most = most_chains(parts, parts.annealed(), plan);
  using Chains = std::function<int64_t(size_t)>;
  // Of the mean, where problem i has chains(i).
  const auto error_with = [&](const Chains& chains) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < measuring.size(); ++i) {
      const double left = relative_variance(measuring[i]) / static_cast<double>(chains(i));
      sum += left;
      squares += left * left;
    }
    const double mean = sum / count;
    const double spread = std::sqrt(std::max(0.0, squares / count - mean * mean) / count);
    const double variance = mean + spread;
    return std::hypot(std::sqrt(variance / static_cast<double>(num_problems)), variance / 2);
  };
  const double asked = *parts.options.mean_error;

  MeanErrorPlan best;
  const auto all = [](int64_t chains) { return [chains](size_t) { return chains; }; };
  for (best.chains = 4; best.chains < most && error_with(all(best.chains)) > asked;)
    best.chains = best.chains < 64 ? best.chains + 1 : best.chains + best.chains / 64;
  best.chains = std::max<int64_t>(2, std::min(best.chains, most));
  auto least = static_cast<double>(best.chains);
  for (const int64_t choosing : {kMostChoosing / 2, kMostChoosing}) {
    const auto weights = pilot_weights(run.log_w.slice(1, 0, choosing));
    const auto by = [&](double per_spread) {
      return [&, per_spread](size_t i) { return chains_by_spread(weights[i], per_spread, most); };
    };
    double low = 1e-3, high = 1e9;
    for (int i = 0; i < 60; ++i) {
      const double middle = std::sqrt(low * high);
      (error_with(by(middle)) <= asked ? high : low) = middle;
    }
    auto chains = static_cast<double>(choosing);
    for (size_t i = 0; i < weights.size(); ++i) chains += static_cast<double>(by(high)(i)) / count;
    if (chains >= least) continue;
    least = chains;
    best = {0, ChainsBySpread{choosing, high}};
  }
  return best;
}

TargetedRun estimate_to_error(const EstimatorParts& parts, const Method& method,
                              const Problem& problem, const Plan& plan,
                              const std::optional<ChainsBySpread>& by_spread, at::Generator& rng) {
  const int64_t fewest = plan.num_particles, most = most_chains(parts, method, plan);
  const AnnealResult pilot =
      anneal_in_blocks(problem, *parts.path, plan, *parts.transition,
                       by_spread ? by_spread->pilot_chains : std::max<int64_t>(fewest, 8), rng,
                       parts.resampling.get());
  std::map<int64_t, std::vector<int64_t>> groups;  // by the number of chains
  const std::vector<PilotWeights> weights =
      problem.partition() ? pilot_weights(problem.partition()->log_sum_exp(pilot.log_w))
                          : pilot_weights(pilot.log_w, pilot.genealogy);
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t chains = by_spread
                               ? chains_by_spread(weights[i], by_spread->per_spread, most)
                               : chains_for(weights[i], *parts.options.target_error, fewest, most);
    groups[chains].push_back(static_cast<int64_t>(i));
  }
  TargetedRun result{{}, pilot.cost};
  for (const auto& [chains, members] : groups) {
    require_weights(chains, static_cast<int64_t>(members.size()), "max_evaluations");
    const at::Tensor index = at::tensor(members, at::kLong).to(problem.base().options().device());
    const std::optional<Partition>& whole = problem.partition();
    Plan longer = select(plan, whole ? whole->rows_of(index) : index);
    longer.num_particles = chains;
    const Problem part = problem.select_whole(index);
    MethodResult found = method.estimate(part, longer, rng);
    if (part.partition()) found = merged(std::move(found), *part.partition());
    result.run.scatter(to_run(found, index.size(0)), members);
  }
  if (!parts.options.target_error) return result;
  for (size_t i = 0; i < result.run.flags.size(); ++i)
    if (!(result.run.std_error[i] <= *parts.options.target_error))
      result.run.flags[i] |= kMissedTarget;
  return result;
}

}  // namespace crais
