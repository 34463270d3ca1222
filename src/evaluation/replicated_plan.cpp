#include "evaluation/replicated_plan.h"

#include <algorithm>
#include <string>

#include "evaluation/settled_witness.h"
#include "samplers/settling.h"

namespace crais {
namespace {

constexpr int64_t kFewChains = 16, kPilotChains = 16, kFewestSteps = 32, kMostSteps = 300;

}  // namespace

bool plans_by_chunk(const Target& target, const std::string& base) {
  return target.is_replicated() && base.rfind("mixture", 0) == 0;
}

TunedPlan replicated_plan(const EstimatorParts& parts, const Problem& problem, const Cost& base,
                          uint64_t stream) {
  const std::optional<Partition>& partition = problem.partition();
  const int64_t problems = partition ? partition->num_problems : problem.num_problems();
  const int64_t each = problem.num_problems() / problems;  // parts of a replicate
  const at::TensorOptions rows = problem.base().options().dtype(at::kLong);
  const Problem one = problem.select(at::arange(each, rows));
  int64_t steps = parts.options.steps, chains = parts.options.chains;
  if (parts.options.budget) {
    const int64_t move = parts.transition->evaluations_per_step();
    const auto spent = static_cast<double>(base.densities) / static_cast<double>(problems);
    // A witness settles particles, and asks for the density of every chain's last one.
    const int64_t witness =
        parts.options.witness
            ? kWitnesses * (settling_evaluations(*parts.transition, kWitnessSweeps) + 1)
            : 0;
    const int64_t last = parts.options.witness ? 1 : 0;
    const double left =
        std::max(0.0, *parts.options.budget - spent -
                          static_cast<double>(witness) / static_cast<double>(problems)) /
        static_cast<double>(each * move);
    const double pilots = static_cast<double>(kPilotChains) / static_cast<double>(problems);
    const auto affordable = static_cast<int64_t>(left / (kFewChains + pilots)) - 1 - last;
    steps = std::clamp(affordable, kFewestSteps, kMostSteps);
    chains = std::max(kFewChains,
                      static_cast<int64_t>(left / static_cast<double>(steps + 1 + last) - pilots));
  }
  PilotOptions options = parts.pilot;
  if (parts.options.budget) options.interpolate = 0;  // it has chosen the steps
  options.num_particles = std::max(kPilotChains, parts.options.pilot_chains.value_or(0));
  options.shared = false;
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, stream);
  PilotRun pilot =
      run_pilot(one, *parts.path, *parts.make_rule(steps), *parts.transition, options, rng);
  TunedPlan tuned{select(pilot.plan, at::arange(each, rows).repeat({problems})), pilot.run.cost};
  tuned.plan.num_particles = chains;
  return tuned;
}

}  // namespace crais
