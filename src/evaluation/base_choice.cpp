#include "evaluation/base_choice.h"

#include <algorithm>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/base_candidates.h"
#include "samplers/blocks.h"

namespace crais {
namespace {

/// By more than the mean difference is uncertain, at 95%; never on a single problem, whose interval
/// is NaN.
bool clearly_above(const at::Tensor& value, const at::Tensor& other) {
  const at::Tensor apart = value - other;
  return apart.mean().item<double>() > interval_width(apart.numel()) * std_error_of_mean(apart);
}

/// How many of at most `most` pilots may each take `each` evaluations of a budget.
int64_t affordable_pilots(const EstimateOptions& options, int64_t most, double each,
                          int64_t num_problems) {
  if (!options.budget) return most;
  constexpr double kShare = 0.05;
  const double allowed = kShare * *options.budget * static_cast<double>(num_problems);
  return std::min(most, static_cast<int64_t>(allowed / each));
}

/// A search of the pilots for modes. Adds what it costs.
Rivals rivals_among(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                    Cost& cost) {
  if (!target.can_select()) return Rivals::kUnknown;
  const auto modes = BaseRegistry::instance().make("base", "modes");
  const double expected = *modes->expected_cost(target);
  const int64_t count = affordable_pilots(
      parts.options, std::min<int64_t>(parts.options.pilot_problems, target.num_problems()),
      expected, num_problems);
  if (count == 0) return Rivals::kUnknown;
  const auto slice = target.slice(0, count);
  const Target& pilots = *slice;
  const Base found = fit_base(parts, *modes, pilots, kSharedStream - 3);
  cost += found.cost;
  const int64_t doubtful = (found.fell_back | found.ambiguous).sum().item<int64_t>();
  if (!found.partition) return doubtful == 0 ? Rivals::kNone : Rivals::kFew;
  const int64_t several = (found.partition->counts() > 1).sum().item<int64_t>();
  // Where climbs do not arrive, they end in as many places as there are starts.
  const bool arrives =
      static_cast<double>(found.cost.densities) <= 1.5 * expected * static_cast<double>(count);
  return 8 * several >= count && 8 * doubtful <= count && arrives ? Rivals::kMany : Rivals::kFew;
}

int64_t num_pilots(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                   const std::vector<std::string>& candidates) {
  const EstimateOptions& options = parts.options;
  const int64_t pilots = std::min(options.pilot_problems, target.num_problems());
  double trial = 0;
  for (const std::string& name : candidates)
    trial += static_cast<double>(2 * options.chains * parts.evaluations_per_chain(options.steps)) +
             BaseRegistry::instance().make("base", name)->expected_cost(target).value_or(0);
  return affordable_pilots(options, pilots, trial, num_problems);
}

/// What a candidate's pilots found.
struct Trial {
  Plan plan;
  at::Tensor value;  // [P] estimates of fresh chains, nats
};

/// Adds what it costs to `cost`, also where it throws.
Trial try_base(const EstimatorParts& parts, const std::string& name, const Target& pilots,
               std::optional<at::ScalarType> forces, Cost& cost) {
  const auto rule = BaseRegistry::instance().make("base", name);
  const Base base = fit_base(parts, *rule, pilots, kSharedStream);
  cost += base.cost;
  const CentredProblem centre = centred(parts, pilots, base, forces, kSharedStream);
  cost += centre.cost;
  TunedPlan tuned = make_plan(parts, centre.problem, kSharedStream);
  cost += tuned.cost;
  at::Generator rng = stream_of(parts, pilots, Purpose::kPilot, kSharedStream - 1);
  const AnnealResult run =
      anneal_in_blocks(centre.problem, *parts.path, tuned.plan, *parts.transition,
                       parts.options.chains, rng, parts.resampling.get());
  cost += run.cost;
  const at::Tensor value = log_normalizer(run.log_w, run.genealogy).value;
  return {std::move(tuned.plan), base.partition ? base.partition->log_sum_exp(value) : value};
}

}  // namespace

BaseChoice choose_base(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                       std::optional<at::ScalarType> forces) {
  if (parts.num_anneals() == 0) {  // IWAE and the ELBO are known by the encoder they start from
    const bool learns = std::any_of(parts.methods.begin(), parts.methods.end(),
                                    [](const auto& method) { return method->learns(); });
    return {target.amortised_base() && !learns ? "encoder" : "laplace", {}, {}};
  }
  BaseChoice best;
  const Rivals rivals = rivals_among(parts, target, num_problems, best.cost);
  const std::vector<std::string> candidates = base_candidates(parts, target, num_problems, rivals);
  const int64_t pilots = num_pilots(parts, target, num_problems, candidates);
  if (pilots == 0) return {candidates.front(), {}, best.cost};
  const auto part = target.slice(0, pilots);
  at::Tensor highest;
  for (const std::string& name : candidates) {
    try {
      Trial trial = try_base(parts, name, *part, forces, best.cost);
      if (highest.defined() && !clearly_above(trial.value, highest)) continue;
      highest = trial.value;
      best.name = name;
      best.plan = std::move(trial.plan);
    } catch (const ScheduleError& error) {
      best.cost += error.spent;
      if (name == candidates.back() && best.name.empty()) throw;
    }
  }
  return best;
}

}  // namespace crais
