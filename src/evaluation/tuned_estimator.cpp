#include "evaluation/tuned_estimator.h"

#include <chrono>
#include <utility>

#include "evaluation/parts.h"
#include "evaluation/target_error.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;

/// What a base says of its problems.
std::vector<int64_t> flags_of(const Base& base) {
  const at::Tensor failed = base.fell_back.cpu(), ambiguous = base.ambiguous.cpu();
  std::vector<int64_t> flags(static_cast<size_t>(base.map.num_problems()));
  for (size_t i = 0; i < flags.size(); ++i) {
    if (failed[static_cast<int64_t>(i)].item<bool>()) flags[i] |= kBaseFailed;
    if (ambiguous[static_cast<int64_t>(i)].item<bool>()) flags[i] |= kModes;
  }
  return flags;
}

}  // namespace

TunedEstimator::TunedEstimator(std::shared_ptr<const EstimatorParts> parts, TunedState state,
                               std::vector<std::shared_ptr<const Method>> methods)
    : parts_(std::move(parts)),
      state_(std::move(state)),
      base_(BaseRegistry::instance().make("base", state_.base)),
      methods_(std::move(methods)) {}

const EstimateOptions& TunedEstimator::options() const { return parts_->options; }

ChunkResult TunedEstimator::estimate(int64_t chunk, const Target& target) const {
  const auto stream = static_cast<uint64_t>(chunk);
  ChunkResult result;
  result.chunk = chunk;
  const Base base = fit_base(*parts_, *base_, target, stream);
  result.base = base.cost;
  const CentredProblem centre = centred(*parts_, target, base.map, stream);
  result.tuning = centre.cost;
  Plan plan{{}, {}, options().chains};
  if (state_.plan) {
    plan = *state_.plan;
  } else if (parts_->num_anneals() > 0) {
    const TunedPlan own = make_plan(*parts_, centre.problem, stream);
    result.tuning += own.cost;
    result.plan = plan = own.plan;
  }
  const std::vector<int64_t> base_flags = flags_of(base);
  for (int64_t repeat = 0; repeat < options().repeats; ++repeat) {
    for (size_t m = 0; m < methods_.size(); ++m) {
      const Method& method = *methods_[m];
      const uint64_t seed = derive_seed(options().seed, Purpose::kEstimate, stream);
      at::Generator rng = make_generator(mix64(mix64(seed ^ static_cast<uint64_t>(repeat)) ^ m),
                                         target.options().device());
      const auto start = Clock::now();
      ChunkRun run;
      if (options().target_error && method.num_anneals() > 0) {
        TargetedRun targeted = estimate_to_error(*parts_, method, centre.problem, plan, rng);
        run = std::move(targeted.run);
        result.tuning += targeted.tuning;
      } else {
        MethodResult found = method.estimate(centre.problem, plan, rng);
        run = to_run(found, target.num_problems());
        for (size_t i = 0; i < parts_->expectations.size(); ++i)
          run.expectations[options().expectations[i]] = expectation_sums(
              parts_->expectations[i]->values(target, found.particles->z), *found.particles);
        if (options().keep_particles) run.particles = std::move(found.particles);
      }
      run.method = options().methods[m];
      run.repeat = repeat;
      run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      for (size_t i = 0; i < base_flags.size(); ++i) run.flags[i] |= base_flags[i];
      result.runs.push_back(std::move(run));
    }
  }
  return result;
}

}  // namespace crais
