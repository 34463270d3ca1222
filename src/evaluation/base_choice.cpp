#include "evaluation/base_choice.h"

#include <algorithm>
#include <vector>

#include "bases/variational.h"
#include "estimates/estimate.h"
#include "evaluation/comparison.h"
#include "samplers/blocks.h"

namespace crais {
namespace {

/// By more than the mean difference is uncertain, at 95%; never on a single problem, whose interval
/// is NaN.
bool clearly_above(const at::Tensor& value, const at::Tensor& other) {
  const at::Tensor apart = value - other;
  return apart.mean().item<double>() > interval_width(apart.numel()) * std_error_of_mean(apart);
}

constexpr const char* kModesBase = "modes";

/// True if a search finds several modes in an eighth of the pilots or more: then every problem gets
/// a search of its own. Adds what it costs.
bool have_rivals(const EstimatorParts& parts, const Target& pilots, Cost& cost) {
  if (!pilots.can_select()) return false;
  const Base found = fit_base(parts, *BaseRegistry::instance().make("base", kModesBase), pilots,
                              kSharedStream - 3);
  cost += found.cost;
  if (!found.partition) return false;
  const int64_t several = (found.partition->counts() > 1).sum().item<int64_t>();
  return 8 * several >= pilots.num_problems();
}

/// The fit `name` moved towards the normal nearest to each posterior, where that costs at most a
/// fifth of what an estimate does; else `name`.
std::string refined(const std::string& name, const EstimatorParts& parts, const Target& target) {
  constexpr double kShare = 0.2;
  const size_t colon = name.find(':');
  const std::string fit = name.substr(0, colon);
  const std::string widening = colon == std::string::npos ? "1" : name.substr(colon + 1);
  const bool is_plain_fit =
      fit != "prior" && fit != "encoder" && widening.find(',') == widening.npos;
  if (target.is_replicated() || !is_plain_fit) return name;
  const EstimateOptions& options = parts.options;
  const auto estimate = static_cast<double>(options.chains * parts.num_anneals() *
                                            parts.evaluations_per_chain(options.steps));
  const auto cost = static_cast<double>(kVariationalRounds * variational_round(target));
  if (cost > kShare * options.budget.value_or(estimate)) return name;
  const std::string refined = "variational:" + widening;
  return fit == "laplace" ? refined : refined + ",from=" + fit;
}

/// A Laplace base a tenth wider lets chains begin in tails too, where they have the time to come
/// back. A budget decides on the time later.
std::string reaching(const std::string& name, const EstimateOptions& options) {
  constexpr int64_t kLong = 64;
  const bool is_fit = name == "laplace" || name == kModesBase;
  return is_fit && !options.budget && options.steps >= kLong ? name + ":1.1" : name;
}

int64_t num_pilots(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                   size_t num_candidates) {
  const EstimateOptions& options = parts.options;
  const int64_t pilots = std::min(options.pilot_problems, target.num_problems());
  if (!options.budget) return pilots;
  const auto trial = static_cast<double>(2 * options.chains * static_cast<int64_t>(num_candidates) *
                                         parts.evaluations_per_chain(options.steps));
  const double tenth = 0.1 * *options.budget * static_cast<double>(num_problems);
  return std::min(pilots, static_cast<int64_t>(tenth / trial));
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
                                    [](const auto& method) { return method->needs_preparation(); });
    return {target.amortised_base() && !learns ? "encoder" : "laplace", {}, {}};
  }
  BaseChoice best;
  std::vector<std::string> candidates = target.base_candidates();
  if (!parts.options.budget &&
      have_rivals(
          parts,
          *target.slice(0, std::min<int64_t>(parts.options.pilot_problems, target.num_problems())),
          best.cost))
    candidates.insert(candidates.begin(), kModesBase);
  for (std::string& name : candidates) name = refined(reaching(name, parts.options), parts, target);
  const int64_t pilots = num_pilots(parts, target, num_problems, candidates.size());
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
