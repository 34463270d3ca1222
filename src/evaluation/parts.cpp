#include "evaluation/parts.h"

#include <algorithm>
#include <utility>

#include "evaluation/driver.h"
#include "samplers/blocks.h"
#include "targets/partitioned.h"
#include "targets/transformed.h"
#include "util/error.h"

namespace crais {
namespace {

/// The base of one problem for `count` replicates of it, at no cost.
Base repeated(const Base& fit, int64_t count) {
  Base base = together(std::vector<Base>(static_cast<size_t>(count), fit));
  const at::Tensor parts = at::arange(fit.map.num_problems(), fit.map.options().dtype(at::kLong));
  base.map = fit.map.select(parts.repeat({count}));
  base.cost = {};
  return base;
}

}  // namespace

EstimatorParts::EstimatorParts(EstimateOptions estimate_options,
                               std::shared_ptr<const Driver> of_problems)
    : options(std::move(estimate_options)),
      driver(of_problems ? std::move(of_problems) : std::make_shared<const Driver>()) {
  check(options);
  path = PathRegistry::instance().make("path", options.path);
  rule = make_rule(options.steps);
  transition = TransitionRegistry::instance().make("kernel", options.kernel,
                                                   TransitionOptions{options.num_leapfrog});
  if (!options.resampling.empty())
    resampling = ResamplingRegistry::instance().make("resampling", options.resampling);
  pilot = pilot_options(options, *rule, resampling.get());
  methods.reserve(options.methods.size());
  for (const auto& method : options.methods) {
    methods.push_back(make_method(method));
    if (wants_particles() && !methods.back()->has_particles())
      throw argument_error("`methods` " + method + " has no weighted particles, which " +
                           (options.keep_particles ? "`save_particles`" : "`expectations`") +
                           " takes; use ais (with `resampling`: SMC)");
  }
  expectations.reserve(options.expectations.size());
  for (const auto& name : options.expectations)
    expectations.push_back(ExpectationRegistry::instance().make("expectation", name));
  const auto annealed = std::count_if(methods.begin(), methods.end(),
                                      [](const auto& method) { return method->num_anneals() > 0; });
  if (options.budget && annealed != 1)
    throw argument_error("`budget` plans for one annealed entry of `methods`, not " +
                         std::to_string(annealed));
}

const Method& EstimatorParts::annealed() const {
  return **std::find_if(methods.begin(), methods.end(),
                        [](const auto& method) { return method->num_anneals() > 0; });
}

bool EstimatorParts::has_upper() const {
  return std::any_of(methods.begin(), methods.end(),
                     [](const auto& method) { return method->has_upper(); });
}

int64_t EstimatorParts::num_anneals() const {
  int64_t most = 0;
  for (const auto& method : methods) most = std::max(most, method->num_anneals());
  return most;
}

bool EstimatorParts::wants_particles() const {
  return options.keep_particles || !options.expectations.empty();
}

std::unique_ptr<Method> EstimatorParts::make_method(const std::string& name, Pilots* pilots) const {
  const bool keep_particles = wants_particles() || options.witness;
  const AnnealingParts made_of{path, transition, resampling, keep_particles, pilots};
  return MethodRegistry::instance().make("method", name, made_of);
}

std::unique_ptr<ScheduleRule> EstimatorParts::make_rule(int64_t steps) const {
  return ScheduleRegistry::instance().make("schedule", options.schedule,
                                           schedule_options(options, steps));
}

at::Generator stream_of(const EstimatorParts& parts, const Target& target, Purpose purpose,
                        uint64_t stream) {
  return make_counting_generator(derive_seed(parts.options.seed, purpose, stream),
                                 target.options().device());
}

Base fit_base(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
              uint64_t stream) {
  at::Generator rng = stream_of(parts, target, Purpose::kBase, stream);
  return rule.build(target, rng);
}

Base fit_base(const EstimatorParts& parts, const TunedState& state, const Target& target,
              uint64_t stream) {
  if (state.fit) return repeated(*state.fit, target.num_problems());
  return fit_base(parts, *state.rule, target, stream);
}

Plan repeated(const Plan& plan, int64_t count) {
  const int64_t columns = plan.betas.size(1);
  return columns == 1 ? plan : select(plan, at::arange(columns, at::kLong).repeat({count}));
}

CentredProblem centred(const EstimatorParts& parts, const Target& target, const Base& base,
                       std::optional<at::ScalarType> forces, uint64_t stream) {
  auto annealed = forces ? target.with_forces(*forces) : target.shared();
  if (!annealed)
    throw argument_error("the plan uses forces that this target lacks; tune it again here");
  annealed = transformed(annealed, base.bijection);
  if (base.partition)
    annealed = std::make_shared<PartitionedTarget>(*annealed, base.map, *base.partition);
  CentredProblem found{Problem(annealed, base.map), {}};
  if (parts.num_anneals() > 0 && parts.path->divergence().order() != 0.0) {
    constexpr int64_t kSteps = 64;
    at::Generator rng = stream_of(parts, target, Purpose::kCentre, stream);
    const RoughNormalizer rough =
        rough_log_normalizer(found.problem, *parts.transition, kSteps, parts.pilot, rng);
    found = {Problem(annealed, base.map, rough.value), rough.cost};
  }
  found.problem.set_partition(base.partition);
  return found;
}

TunedPlan make_plan(const EstimatorParts& parts, const Problem& problem, uint64_t stream) {
  TunedPlan tuned;
  if (parts.needs_pilot()) {
    at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, stream);
    PilotRun pilot =
        run_pilot(problem, *parts.path, *parts.rule, *parts.transition, parts.pilot, rng);
    tuned = {std::move(pilot.plan), pilot.run.cost};
  } else {
    tuned.plan = freeze(*parts.rule, *parts.pilot.step_size);
  }
  tuned.plan.num_particles = parts.options.chains;
  return tuned;
}

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
