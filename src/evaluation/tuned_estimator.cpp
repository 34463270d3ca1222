#include "evaluation/tuned_estimator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluation/driver.h"
#include "evaluation/parts.h"
#include "samplers/blocks.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;

/// The flags of each problem that its base raises.
std::vector<int64_t> flags_of(const Base& base) {
  const auto raised = [](const at::Tensor& where, int64_t flag) {
    return where.to(at::kCPU, at::kLong) * flag;
  };
  at::Tensor flags = raised(base.fell_back, kBaseFailed) + raised(base.ambiguous, kModes);
  if (base.apart.defined()) flags = flags + raised(base.apart, kApart);
  return {flags.data_ptr<int64_t>(), flags.data_ptr<int64_t>() + flags.numel()};
}

/// Flags estimates that are too low, by more than their errors explain.
void flag_below(const at::Tensor& at_least, ChunkRun& run) {
  constexpr double kErrors = 5, kSmall = 0.02;  // nats
  const std::vector<double> least = to_column(at_least);
  for (size_t i = 0; i < least.size(); ++i)
    if (least[i] - run.log_normalizer[i] >
        std::max(kErrors * run.std_error[i] + std::abs(run.bias[i]), kSmall))
      run.flags[i] |= kModes;
}

/// Divides the cost of the estimate between problems in proportion to their number of parts.
void share_cost(const Partition& partition, ChunkRun& run) {
  const std::vector<double> counts = to_column(partition.counts());
  const double mean =
      static_cast<double>(partition.num_parts()) / static_cast<double>(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) run.evaluations[i] *= counts[i] / mean;
}

}  // namespace

TunedEstimator::TunedEstimator(std::shared_ptr<const EstimatorParts> parts, TunedState state,
                               std::vector<std::shared_ptr<const Method>> methods)
    : parts_(std::move(parts)), state_(std::move(state)), methods_(std::move(methods)) {}

const EstimateOptions& TunedEstimator::options() const { return parts_->options; }

int64_t TunedEstimator::num_chains() const {
  return state_.plan ? state_.plan->num_particles : options().chains;
}

ChunkResult TunedEstimator::estimate(int64_t chunk, const Target& target) const {
  ChunkResult result{.chunk = chunk};
  const auto stream = static_cast<uint64_t>(chunk);
  const Base base = fit_base(*parts_, state_, target, stream);
  result.base = base.cost;
  const CentredProblem centre = centred(*parts_, target, base, state_.forces, stream);
  result.tuning = centre.cost;
  Plan plan{{}, {}, options().chains};
  if (state_.plan) {
    plan = state_.fit ? repeated(*state_.plan, target.num_problems()) : *state_.plan;
  } else if (parts_->num_anneals() > 0) {
    TunedPlan own = make_plan(*parts_, centre.problem, stream);
    result.tuning += own.cost;
    plan = std::move(own.plan);
    result.plan = base.partition ? select(plan, base.main_rows()) : plan;
  }
  const std::vector<int64_t> base_flags = flags_of(base);
  for (int64_t repeat = 0; repeat < options().repeats; ++repeat) {
    for (size_t m = 0; m < methods_.size(); ++m) {
      const Method& method = *methods_[m];
      const uint64_t seed = mix64(mix64(derive_seed(options().seed, Purpose::kEstimate, stream) ^
                                        static_cast<uint64_t>(repeat)) ^
                                  m);
      at::Generator rng = make_counting_generator(seed, target.options().device());
      const auto start = Clock::now();
      ChunkRun run;
      MethodResult found = estimate_under(plan, method, centre.problem, seed);
      run = to_run(found, target.num_problems());
      if (base.partition) share_cost(*base.partition, run);
      if (found.particles)
        parts_->driver->check(*parts_, state_.base, centre.problem, plan, *found.particles, result);
      if (base.bijection && found.particles)
        found.particles->z = base.bijection->to_z(found.particles->z);
      for (size_t i = 0; i < parts_->expectations.size(); ++i)
        run.expectations[options().expectations[i]] = expectation_sums(
            parts_->expectations[i]->values(target, found.particles->z), *found.particles);
      if (options().keep_particles) run.particles = std::move(found.particles);
      run.method = options().methods[m];
      run.repeat = repeat;
      run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      for (size_t i = 0; i < base_flags.size(); ++i) run.flags[i] |= base_flags[i];
      if (base.at_least.defined() && method.num_anneals() > 0) flag_below(base.at_least, run);
      if (state_.rounds.is_short && method.num_anneals() > 0 &&
          round_of(run).error > *options().error)
        for (int64_t& flags : run.flags) flags |= kMissedTarget;
      result.runs.push_back(std::move(run));
    }
  }
  return result;
}

}  // namespace crais
