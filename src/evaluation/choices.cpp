#include "evaluation/choices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "estimates/estimate.h"
#include "evaluation/driver.h"
#include "samplers/blocks.h"
#include "samplers/budget.h"
#include "util/error.h"

namespace crais {
namespace {

/// True if the mean difference is above 0 by more than its 95% uncertainty; never true for a single
/// problem, whose interval is NaN.
bool clearly_above(const at::Tensor& value, const at::Tensor& other) {
  const at::Tensor apart = value - other;
  return apart.mean().item<double>() > interval_width(apart.numel()) * std_error_of_mean(apart);
}

/// The number of pilots that try all candidates; under a budget they take a twentieth of it.
int64_t num_pilots(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                   const std::vector<Rule>& candidates) {
  constexpr double kShare = 0.05;
  const EstimateOptions& options = parts.options;
  const int64_t pilots = std::min(options.pilot_problems, target.num_problems());
  if (!options.budget) return pilots;
  double trial = 0;
  for (const Rule& rule : candidates)
    trial += static_cast<double>(2 * options.chains * parts.evaluations_per_chain(options.steps)) +
             rule->expected_cost(target).value_or(0);
  const double allowed = kShare * *options.budget * static_cast<double>(num_problems);
  return std::min(pilots, static_cast<int64_t>(allowed / trial));
}

constexpr double kBaseShare = 0.4;      // of a budget; pilots take a tenth
constexpr double kRefiningShare = 0.2;  // of an estimate
constexpr double kWide = 1.25;          // a Trial's width; most of the nearest normals are at 1.1

/// The most evaluations that the base of a problem may take.
double most_of_base(const EstimateOptions& options, int64_t num_problems) {
  if (!options.budget) return INFINITY;
  // The cost of a pilot's fit comes on top. It matters only for a single problem.
  const auto problems = static_cast<double>(num_problems);
  return kBaseShare * problems / (problems + 1) * *options.budget;
}

/// The pilots' results for a candidate.
struct Trial {
  Plan plan;
  at::Tensor value;  // [P] estimates of new chains, nats
  double width = 1;  // mean square of chains' ends, in the base's coordinates
};

/// Tries a base on the pilots; nothing if its fit takes more than `most` evaluations of a problem,
/// for a search may cost more than was expected. Adds the cost to `cost`, even if it throws.
std::optional<Trial> try_base(const EstimatorParts& parts, const BaseRule& rule,
                              const Target& pilots, double most,
                              std::optional<at::ScalarType> forces, Cost& cost) {
  const Base base = fit_base(parts, rule, pilots, kSharedStream);
  cost += base.cost;
  if (static_cast<double>(base.cost.densities / pilots.num_problems()) > most) return {};
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
  if (base.partition) return Trial{std::move(tuned.plan), base.partition->log_sum_exp(value)};
  const at::Tensor& e = run.particles.e;  // none of many chains
  return Trial{std::move(tuned.plan), value, e.defined() ? e.square().mean().item<double>() : 1};
}

/// A fit by climbs, as wide as asked.
using Fit = std::function<std::unique_ptr<BaseRule>(double widening)>;

/// Lists in order of preference. Of each, the first one that is affordable is a candidate.
std::vector<std::vector<Fit>> fits_of(const Target& target) {
  const auto laplace = [](int64_t rounds) -> Fit {
    return [=](double widening) { return make_laplace({widening, rounds}); };
  };
  const auto modes = [](int64_t batches) -> Fit {
    return [=](double widening) { return make_modes({widening, 0, 0, batches}); };
  };
  if (!target.traits().can_select) return {{laplace(0), laplace(2)}};
  if (!target.traits().may_be_multimodal)
    return {{laplace(0), laplace(2)}, {modes(0), modes(2), modes(1)}};
  return {{modes(0), modes(2), modes(1), laplace(0), laplace(2)}};
}

constexpr int64_t kParticles = 4;  // for each pilot problem
constexpr int64_t kStepSizes = 7;  // 1, 1/2, ..., 1/64: one fits in whitened coordinates
// Limit of the loss in mean acceptance. Cheap forces usually save at least a fifth of the time.
// With so few particles, the loss is known to 0.004.
constexpr double kMostLost = 0.02;
constexpr double kMostOff = 1e-3;    // nats on average, for log-densities of a thousand or less
constexpr int64_t kBaseCost = 2000;  // evaluations for all bases; at least one is fitted

/// The quantities that judge forces.
struct Pilot {
  at::Tensor log_density;  // [P,K] float64
  at::Tensor acceptance;   // mean acceptance of a move at each step size
};

/// A pilot with the same particles of each problem and the same random numbers for all forces.
Pilot make_pilot(const EstimatorParts& parts, const Problem& problem, int64_t particles,
                 Cost& cost) {
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, kSharedStream - 2);
  const Particles start = problem.evaluate(problem.draw(particles, rng));
  cost += problem.cost_of(particles);
  const at::Tensor beta = at::ones({problem.num_problems()}, problem.log_center().options());
  // Every path ends at the target, and a path that pilots must learn is not learned yet.
  const auto path = PathRegistry::instance().make("path", "geometric");
  std::vector<at::Tensor> means;
  for (int64_t i = 0; i < kStepSizes; ++i) {
    const Moved moved = parts.transition->step(problem, *path, start, beta,
                                               beta * std::ldexp(1.0, static_cast<int>(-i)), rng);
    cost += parts.transition->evaluations_per_step() * problem.cost_of(particles);
    means.push_back(moved.accept_prob.mean());
  }
  return {start.log_gamma, at::stack(means)};
}

/// The base at which moves are compared: near the posteriors of the first problems, as many as the
/// cost of their bases allows.
AffineMap base_of(const EstimatorParts& parts, const Target& pilots, Cost& cost) {
  const bool is_asked = parts.options.base != "auto";
  if (!is_asked)
    if (const auto encoded = pilots.amortised_base()) return *encoded;
  const auto rule =
      is_asked ? parts.driver->rule(parts.options.base) : fits_of(pilots).front().front()(1);
  const auto fitted = [&](const Target& target) {
    Base base = fit_base(parts, *rule, target, kSharedStream);
    cost += base.cost;
    return base;
  };
  if (!pilots.traits().can_select) return fitted(pilots).main_parts();
  const Base first = fitted(*pilots.slice(0, 1));
  const int64_t few =
      std::min(pilots.num_problems(), kBaseCost / std::max<int64_t>(1, first.cost.densities));
  return few > 1 ? fitted(*pilots.slice(0, few)).main_parts() : first.main_parts();
}

bool is_as_good(const EstimatorParts& parts, const Target& pilots, Cost& cost) {
  const AffineMap base = base_of(parts, pilots, cost);
  const auto exact = pilots.slice(0, base.num_problems());
  const int64_t particles = kParticles * pilots.num_problems() / base.num_problems();
  const auto of = [&](const std::shared_ptr<const Target>& target) {
    return make_pilot(parts, Problem(target, base), particles, cost);
  };
  const Pilot with = of(exact), cheap = of(exact->with_forces(at::kBFloat16));
  const double lost = (with.acceptance - cheap.acceptance).max().item<double>();
  const double off = (with.log_density - cheap.log_density).abs().mean().item<double>();
  const double size = with.log_density.abs().mean().item<double>();
  return lost <= kMostLost && off <= kMostOff * std::max(1.0, size / 1000);
}

/// The number of chains under a budget. A few long chains are best, but fewer would not show their
/// own error, and resampling needs more particles. For bounds, the chains of both directions show
/// their distance.
int64_t num_chains(const EstimatorParts& parts) {
  constexpr int64_t kChains = 8, kBounding = 2, kResampled = 32;
  if (parts.resampling) return kResampled;
  return parts.has_upper() ? kBounding : kChains;
}

}  // namespace

BaseChoice choose_base(const EstimatorParts& parts, const Target& target, int64_t num_problems,
                       std::optional<at::ScalarType> forces) {
  if (parts.num_anneals() == 0) {  // IWAE and the ELBO usually start from the encoder
    const bool learns = std::any_of(parts.methods.begin(), parts.methods.end(),
                                    [](const auto& method) { return method->learns(); });
    return {target.amortised_base() && !learns ? make_base("encoder") : make_laplace(), {}, {}};
  }
  BaseChoice best;
  std::vector<Rule> candidates = base_candidates(parts, target, num_problems);
  const int64_t pilots = num_pilots(parts, target, num_problems, candidates);
  if (pilots == 0) return {candidates.front(), {}, best.cost};
  const auto part = target.slice(0, pilots);
  const double most = most_of_base(parts.options, num_problems);
  std::optional<Trial> highest;
  const auto consider = [&](const Rule& rule, bool is_refit) {
    try {
      std::optional<Trial> trial = try_base(parts, *rule, *part, most, forces, best.cost);
      if (!trial && rule == candidates.front())  // a search that found much
        candidates.insert(candidates.begin() + 1, make_variational(make_laplace()));
      if (!trial || (highest && (is_refit ? clearly_above(highest->value, trial->value)
                                          : !clearly_above(trial->value, highest->value))))
        return;
      highest = std::move(trial);
      best.rule = rule;
      best.plan = highest->plan;
    } catch (const ScheduleError& error) {
      best.cost += error.spent;
      if (rule == candidates.back() && !best.rule) throw;
    }
  };
  for (size_t i = 0; i < candidates.size(); ++i) consider(candidates[i], /*is_refit=*/false);
  if (parts.options.budget && highest && highest->width > kWide) {
    const Rule refit =
        make_variational(parts.driver->rule(best.rule->name), {.rounds = 6, .observed = true});
    if (refit->expected_cost(target).value_or(INFINITY) <= most) consider(refit, /*is_refit=*/true);
  }
  return best;
}

std::vector<Rule> base_candidates(const EstimatorParts& parts, const Target& target,
                                  int64_t num_problems) {
  const EstimateOptions& options = parts.options;
  constexpr int64_t kLong = 64;
  const double widening = !options.budget && options.steps >= kLong ? 1.1 : 1;
  const auto chains = static_cast<double>(options.chains * parts.num_anneals() *
                                          parts.evaluations_per_chain(options.steps));
  const double estimate = options.budget.value_or(chains);
  const double most = most_of_base(options, num_problems);
  std::vector<Rule> candidates;
  for (const std::vector<Fit>& fits : fits_of(target)) {
    const auto fit = std::find_if(fits.begin(), fits.end(), [&](const Fit& one) {
      return one(widening)->expected_cost(target).value_or(0) <= most;
    });
    if (fit == fits.end()) continue;
    Rule plain = (*fit)(widening), refined = make_variational((*fit)(1), {widening});
    const double cost = plain->expected_cost(target).value_or(0),
                 all = refined->expected_cost(target).value_or(0);
    const bool refines = all <= most && all - cost <= kRefiningShare * estimate;
    candidates.push_back(refines ? refined : plain);
  }
  if (target.amortised_base() && !target.traits().may_be_multimodal)
    candidates.push_back(make_base("encoder"));
  candidates.push_back(make_base("prior"));
  return candidates;
}

std::optional<at::ScalarType> choose_forces(const EstimatorParts& parts, const Target& pilots,
                                            Cost& cost) {
  const std::string& requested = parts.options.force_dtype;
  if (requested == "float32" || parts.num_anneals() == 0) return {};
  if (requested == "auto" && !pilots.traits().forces_pay) return {};
  const auto cheap = pilots.with_forces(at::kBFloat16);
  if (requested == "auto")
    return cheap && is_as_good(parts, pilots, cost) ? std::optional(at::kBFloat16) : std::nullopt;
  if (!cheap)
    throw argument_error(
        "`force_dtype` bfloat16: this model or target computes forces only in its own type; leave "
        "it out");
  return at::kBFloat16;
}

TunedPlan budgeted_plan(const EstimatorParts& parts, const BaseRule& rule, const Target& target,
                        int64_t num_problems, std::optional<at::ScalarType> forces,
                        const Cost& spent) {
  // The cost of the first problem's base determines the number of pilots. A fit of many problems
  // continues until the last one has arrived.
  const Base first = fit_base(parts, rule, *target.slice(0, 1), kSharedStream);
  Budget budget{*parts.options.budget, num_problems, parts.annealed().anneals_of(target),
                first.cost.densities, num_chains(parts)};
  const PilotSize size =
      pilot_size(budget, parts.transition->evaluations_per_step(), target.num_problems());
  const auto pilots = target.slice(0, size.num_problems);
  Base base = first;
  Cost before = first.cost;
  if (size.num_problems > 1) {
    base = fit_base(parts, rule, *pilots, kSharedStream);
    before += base.cost;
  }
  const auto pilots_count = static_cast<double>(size.num_problems);
  // A mean over few pilots is uncertain. Half of its standard error is added, as if the standard
  // deviation of the fits' costs were their mean.
  if (size.num_problems > 1)
    budget.base_cost = static_cast<int64_t>(static_cast<double>(base.cost.densities) /
                                            pilots_count * (1 + 0.5 / std::sqrt(pilots_count)));
  if (base.partition)
    budget.num_anneals *= static_cast<double>(base.partition->num_parts()) / pilots_count;
  const CentredProblem centre = centred(parts, *pilots, base, forces, kSharedStream);
  before += centre.cost;
  at::Generator rng = stream_of(parts, target, Purpose::kPilot, kSharedStream);
  const BudgetParts budget_parts{*parts.path, *parts.transition,
                                 [&](int64_t steps) { return parts.make_rule(steps); },
                                 parts.pilot};
  const BudgetedPlan found =
      plan_within(budget, size, centre.problem, spent + before, budget_parts, rng);
  return {found.plan, before + found.cost};
}

}  // namespace crais
