#include "evaluation/estimator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluation/choices.h"
#include "evaluation/driver.h"
#include "evaluation/parts.h"
#include "samplers/blocks.h"
#include "util/error.h"

namespace crais {

Estimator::Estimator(EstimateOptions options, std::shared_ptr<const Driver> driver)
    : parts_(std::make_shared<EstimatorParts>(std::move(options), std::move(driver))) {
  if (parts_->options.base != "auto") parts_->driver->rule(parts_->options.base);
}

const EstimateOptions& Estimator::options() const { return parts_->options; }

bool Estimator::anneals() const { return parts_->num_anneals() > 0; }

bool Estimator::has_upper() const { return parts_->has_upper(); }

bool Estimator::learns() const {
  return std::any_of(parts_->methods.begin(), parts_->methods.end(),
                     [](const auto& method) { return method->learns(); });
}

bool Estimator::needs_pilot() const {
  return options().budget || options().error || parts_->needs_pilot();
}

bool Estimator::is_adaptive() const { return parts_->rule->is_adaptive(); }

std::shared_ptr<const Target> Estimator::first_pilots(const Target& given) const {
  return given.num_problems() > options().pilot_problems && given.traits().can_select
             ? given.slice(0, options().pilot_problems)
             : given.shared();
}

TunedEstimator Estimator::tune(const Target& given, int64_t num_problems) const {
  if (num_problems == 0) num_problems = given.num_problems();
  if (options().error && !anneals())
    throw argument_error("`error` is for annealed `methods`; others take a number of samples");
  const auto first = first_pilots(given);
  const Target& pilots = *first;
  TunedState state;
  state.forces = choose_forces(*parts_, pilots, state.tuning);
  state.base = options().base;
  if (state.base == "auto") {
    BaseChoice choice = parts_->driver->choose(*parts_, pilots, num_problems, state.forces);
    state.base = choice.rule->name;
    state.rule = std::move(choice.rule);
    state.plan = std::move(choice.plan);
    state.tuning += choice.cost;
  } else {
    state.rule = parts_->driver->rule(state.base);
  }
  share_fit(state, pilots);
  if (state.fit) state.fitting = state.fit->cost;
  if (parts_->driver->plan(*parts_, pilots, num_problems, state))
    return restore(std::move(state), pilots);
  if (!parts_->shares_plan()) {
    state.plan.reset();
  } else if (options().budget) {
    TunedPlan found =
        budgeted_plan(*parts_, *state.rule, pilots, num_problems, state.forces, state.tuning);
    state.plan = std::move(found.plan);
    state.tuning += found.cost;
  } else if (!needs_pilot()) {
    state.plan = freeze(*parts_->rule, *options().step_size);
    state.plan->num_particles = options().chains;
  } else if (!state.plan) {
    const Base base = fit_base(*parts_, state, pilots, kSharedStream);
    const CentredProblem centre = centred(*parts_, pilots, base, state.forces, kSharedStream);
    TunedPlan found = make_plan(*parts_, centre.problem, kSharedStream);
    state.plan = std::move(found.plan);
    state.tuning += base.cost + centre.cost + found.cost;
  }
  return restore(std::move(state), pilots);
}

void Estimator::share_fit(TunedState& state, const Target& given) const {
  if (parts_->driver->shares_fit())
    state.fit = std::make_shared<const Base>(
        fit_base(*parts_, *state.rule, *given.slice(0, 1), kSharedStream));
}

TunedEstimator Estimator::restore(TunedState state, const Target& given) const {
  std::vector<std::shared_ptr<const Method>> methods = parts_->methods;
  state.learned.clear();
  if (!state.rule) state.rule = parts_->driver->rule(state.base);
  if (!state.fit) share_fit(state, given);
  for (size_t m = 0; m < methods.size(); ++m) {
    if (!methods[m]->learns()) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto first = first_pilots(given);
    const Base base = fit_base(*parts_, state, *first, kSharedStream);
    const CentredProblem centre = centred(*parts_, *first, base, state.forces, kSharedStream);
    Pilots pilots{centre.problem, derive_seed(options().seed, Purpose::kTrain, m),
                  base.cost + centre.cost};
    methods[m] = parts_->make_method(options().methods[m], &pilots);
    state.learned[options().methods[m]] = {
        pilots.cost,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  }
  return {parts_, std::move(state), std::move(methods)};
}

}  // namespace crais
