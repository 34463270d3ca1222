#include "evidence/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/particles.h"
#include "core/plan_error.h"
#include "evaluation/chunk_memory.h"
#include "evidence/evidence.h"
#include "samplers/settling.h"

namespace crais {
namespace {

/// Chains of a pilot, or a replicate whose base has few parts; of each part; of all parts that are
/// many.
constexpr int64_t kFewChains = 16, kFewestOfPart = 4, kChainsOfParts = 128;
constexpr int64_t kFewestSteps = 32, kMostSteps = 300;

/// Replicates of one density, by the parts of their base.
struct Replicates {
  const EstimatorParts& parts;
  const Problem& problem;
  int64_t num_problems;     // replicates that share fit, pilots and rounds
  int64_t count;            // of the replicates of `problem`
  int64_t each;             // parts of a replicate
  int64_t few;              // chains of each part, before longer chains are worth more
  double pilots_per_chain;  // pilot chains of the one replicate that is tuned, shared by all
  bool has_witness;         // particles of every chain settle
  int64_t last;             // evaluations of each chain after its last transition

  Replicates(const EstimatorParts& estimator_parts, const Problem& in_parts, int64_t all)
      : parts(estimator_parts),
        problem(in_parts),
        num_problems(all),
        count(in_parts.partition() ? in_parts.partition()->num_problems : in_parts.num_problems()),
        each(in_parts.num_problems() / count),
        few(std::clamp(kChainsOfParts / each, kFewestOfPart, kFewChains)),
        pilots_per_chain(static_cast<double>(kFewChains) / static_cast<double>(all)),
        has_witness(estimator_parts.options.witness && (estimator_parts.options.base == "auto" ||
                                                        is_mixture(estimator_parts.options.base))),
        last(has_witness ? 1 : 0) {}

  /// Evaluations of a replicate, of those for the replicates of `problem`.
  double of_one(const Cost& all) const {
    return static_cast<double>(all.densities) / static_cast<double>(count);
  }
  /// The same, of those that all share.
  double of_all(const Cost& all) const {
    return static_cast<double>(all.densities) / static_cast<double>(num_problems);
  }

  /// Evaluations of a replicate that the witness takes.
  double witness(bool has_moves) const {
    if (!has_witness || !needs_witness(has_moves, problem)) return 0;
    const int64_t dim = problem.target().dim();
    const int64_t each_settles = settling_evaluations(*parts.transition, witness_sweeps(dim));
    return of_one({num_witnesses(dim) * (each_settles + 1), 0});
  }

  /// Evaluations of a transition of one chain in every part.
  double move() const {
    return static_cast<double>(each * parts.transition->evaluations_per_step());
  }

  /// As many temperatures as a few chains of each part allow, at most `enough`, then chains. Beyond
  /// kMostSteps both grow. The evaluations also pay for `pilots` chains of each part.
  std::pair<int64_t, int64_t> steps_and_chains(double evaluations, double pilots,
                                               double enough = 0) const {
    const double moves = std::max(0.0, evaluations) / move();
    const auto affordable =
        static_cast<int64_t>(moves / (static_cast<double>(few) + pilots)) - 1 - last;
    const double most = std::max({static_cast<double>(kMostSteps), std::sqrt(moves), enough});
    const auto steps = static_cast<int64_t>(
        std::clamp(static_cast<double>(affordable), static_cast<double>(kFewestSteps), most));
    const auto chains =
        static_cast<int64_t>(moves / static_cast<double>(steps + 1 + last) - pilots);
    return {steps, std::max(few, chains)};
  }

  /// The parts of the first replicate, each as a problem.
  Problem one() const {
    return problem.select(at::arange(each, problem.base().options().dtype(at::kLong)));
  }

  /// Tuned on one replicate, and meant for all.
  PilotRun tuned(const ScheduleRule& rule, int64_t chains, bool keeps_steps,
                 at::Generator& rng) const {
    PilotOptions options = parts.pilot;
    if (keeps_steps) options.interpolate = 0;
    options.num_particles = std::max(kFewChains, parts.options.pilot_chains.value_or(0));
    options.shared = false;
    PilotRun pilot = run_pilot(one(), *parts.path, rule, *parts.transition, options, rng);
    pilot.plan.num_particles = chains;
    return pilot;
  }
};

bool are_mostly_flagged(const ChunkRun& run) {
  const auto flagged =
      std::count_if(run.flags.begin(), run.flags.end(), [](int64_t flags) { return flags != 0; });
  return 2 * flagged >= static_cast<int64_t>(run.flags.size());
}

/// How well draws from the base cover the density, by the tail of their weights.
enum class Cover { kFull, kDoubtful, kPoor };

/// Rounds on replicates, and the plans that they follow.
class RoundRunner : public Replicates {
 public:
  RoundRunner(const EstimatorParts& parts, const Problem& problem, int64_t num_problems,
              TunedState& state)
      : Replicates(parts, problem, num_problems),
        seed_(derive_seed(parts.options.seed, Purpose::kRound, 0)),
        fitting_(state.fitting),
        cost_(state.tuning),
        rounds_(state.rounds) {}

  /// A plan of so many evaluations of a replicate, by a pilot of its own. Where particles decide
  /// on the temperatures, they say where these are, and the length says how many. The steps are
  /// equal where the particles find no way.
  Plan planned(double evaluations) {
    const auto [steps, chains] = steps_and_chains(evaluations, pilots_per_chain, enough_steps_);
    require_weights(chains, problem.num_problems(), "max_evals");
    if (!parts.rule->is_adaptive()) return planned(*parts.make_rule(steps), chains);
    try {
      return interpolate(planned(*parts.rule, chains), steps);
    } catch (const ScheduleError& error) {
      cost_ += error.spent;
      const ScheduleOptions equal = schedule_options(parts.options, steps);
      return planned(*ScheduleRegistry::instance().make("schedule", "linear", equal), chains);
    }
  }

  /// Importance sampling from the base by so many evaluations of a replicate. Cost: none.
  Plan sampled(double evaluations) const {
    constexpr double kFewestDraws = 256;  // of each part, to see the tail of the weights
    const auto draws =
        static_cast<int64_t>(std::max(kFewestDraws, evaluations / static_cast<double>(each)));
    require_weights(draws, problem.num_problems(), "max_evals");
    return Plan::without_moves(each, draws);
  }

  /// The most evaluations of a replicate by importance sampling: what is left after `spent`, as far
  /// as the particles fit into a gigabyte.
  double most_sampled(double spent) const {
    constexpr double kNumbers = 1 << 27;
    const double seen_again = witness(false) > 0 ? of_one({kMostForward, 0}) : 0;
    return std::min(parts.options.max_evaluations - spent - seen_again,
                    kNumbers / static_cast<double>(count) / static_cast<double>(problem.dim()));
  }

  /// The temperatures and step sizes of a plan at so many evaluations of a replicate.
  Plan lengthened(const Plan& plan, double evaluations) const {
    const auto [steps, chains] = steps_and_chains(evaluations, 0, enough_steps_);
    require_weights(chains, problem.num_problems(), "max_evals");
    Plan longer = interpolate(plan, steps);
    longer.num_particles = chains;
    return longer;
  }

  /// What a round under the plan has found; it is the last of `rounds`.
  const ChunkRun& run(const Plan& plan) {
    estimated(plan);
    enough_steps_ = enough_steps(plan);
    return *rounds_.last;
  }

  /// Runs a round of draws. Where draws cover the density, chains do not pay: they turn the
  /// variance e^c - 1 of relative weights into c at best, at several evaluations a temperature. A
  /// tail may hide mass that draws have not seen.
  Cover cover_by(const Plan& draws) {
    constexpr double kLight = 0.35, kHeavy = 0.5, kVariance = 10;
    const MethodResult found = estimated(draws);
    const at::Tensor log_w = found.particles ? found.particles->log_w : found.log_w;
    const at::Tensor all = log_w.flatten().unsqueeze(0);  // replicates are of one density
    if (are_mostly_flagged(*rounds_.last) || !(1 / ess(all).item<double>() - 1 < kVariance))
      return Cover::kPoor;
    const double k = pareto_k(all).item<double>();
    return k < kLight ? Cover::kFull : k < kHeavy ? Cover::kDoubtful : Cover::kPoor;
  }

  /// True if the last round, of chains, found no more mass than the first one, of draws, and would
  /// have taken much longer to the same error.
  bool chains_confirm_draws() const {
    constexpr double kErrors = 2;
    const Round &draws = rounds_.each.front(), &chains = rounds_.each.back();
    const auto cost = [](const Round& r) { return r.error * r.error * r.evaluations; };
    return chains.log_normalizer - draws.log_normalizer <
               kErrors * std::hypot(draws.error, chains.error) &&
           cost(chains) > 2 * cost(draws);
  }

  /// Evaluations of a replicate: of the fit and all rounds so far, and of what comes after an
  /// estimate that has moves or not.
  double spent(bool has_moves) const { return of_all(fitting_ + cost_) + witness(has_moves); }

 private:
  /// Estimates as the next of `rounds`.
  MethodResult estimated(const Plan& plan) {
    MethodResult found =
        estimate_under(repeated(plan, count), parts.annealed(), problem, next_seed());
    cost_ += found.cost;
    rounds_.last = to_run(found, count);
    rounds_.each.push_back(round_of(*rounds_.last));
    return found;
  }

  Plan planned(const ScheduleRule& rule, int64_t chains) {
    at::Generator rng = make_counting_generator(next_seed(), problem.base().options().device());
    PilotRun pilot = tuned(rule, chains, /*keeps_steps=*/true, rng);
    rounds_.barrier = pilot.run.barrier.max().item<double>();
    cost_ += pilot.run.cost;
    return std::move(pilot.plan);
  }

  /// The temperatures at which a chain's weight would have half of its mean squared as variance,
  /// by the last round: variance falls with the number of temperatures. Up to there longer chains
  /// are worth more than further chains.
  double enough_steps(const Plan& plan) const {
    const at::Tensor std_error = at::tensor(rounds_.last->std_error, at::kDouble);
    const double chains = static_cast<double>(plan.num_particles);
    const double variance = chains * std_error.square().median().item<double>();
    return variance / 0.5 * static_cast<double>(plan.num_steps());
  }

  uint64_t next_seed() { return mix64(seed_ ^ ++num_seeds_); }

  uint64_t seed_, num_seeds_ = 0;
  double enough_steps_ = 0;  // after the last round
  Cost fitting_;
  Cost& cost_;
  Rounds& rounds_;
};

/// AIS may draw from the base alone. Upper bounds, and paths of another kind than the geometric
/// one, ask for chains.
bool may_sample(const EstimatorParts& parts) {
  return parts.annealed().has_particles() && !parts.has_upper() && !parts.path->needs_learning() &&
         parts.path->divergence().order() == 0;
}

/// See plan_by_rounds. Rounds are in `rounds`, also where Error is thrown.
Plan rounds_to_plan(const EstimatorParts& parts, RoundRunner& runner, Rounds& rounds) {
  constexpr double kMargin = 1.5;  // of a length: the error of a round is uncertain itself
  constexpr double kFarthest = 8;  // rounds' lengths to which one round's error extends
  constexpr double kShare = 0.25;  // of what was spent: a fit pays off by a longer estimate
  const double first = runner.problem.dim() > kManyDims ? 2000 : 4000;  // evaluations each
  // Errors fall at least with the square root of the length.
  const auto wanted_after = [&](double evaluations) {
    const double ratio = rounds.each.back().error / *parts.options.error;
    return evaluations * kMargin * ratio * ratio;
  };
  Cover cover = Cover::kPoor;
  double by_draws = 0;  // evaluations that draws would take
  if (may_sample(parts)) {
    const double fit = runner.spent(false);
    const double check = fit > 0 ? std::min(first / 2, fit) : first / 2;  // no dearer than a fit
    cover = runner.cover_by(runner.sampled(check));
    by_draws = wanted_after(rounds.each.back().evaluations);
  }
  const auto draws_are_enough = [&] {
    return by_draws <= runner.most_sampled(runner.spent(false));
  };
  const auto drawn = [&] {
    const double before = runner.spent(false);
    return runner.sampled(
        std::min(runner.most_sampled(before), std::max(by_draws, kShare * before)));
  };
  if (cover == Cover::kFull && draws_are_enough()) return drawn();
  for (double evaluations = first;; evaluations *= 2) {
    const Plan plan = runner.planned(evaluations);
    const bool is_flagged = are_mostly_flagged(runner.run(plan));
    if (cover == Cover::kDoubtful && !is_flagged && runner.chains_confirm_draws() &&
        draws_are_enough())
      return drawn();
    const double left = parts.options.max_evaluations - runner.spent(true);
    const double wanted = wanted_after(evaluations);
    // Flagged rounds predict nothing.
    const bool is_enough = !is_flagged && wanted <= kFarthest * evaluations;
    if (!is_enough && left >= 6 * evaluations) continue;  // a round, and the estimate after it
    rounds.is_short = !is_enough || wanted > left;
    const double length = is_enough ? std::max(wanted, kShare * runner.spent(true)) : left;
    return runner.lengthened(plan, std::max(evaluations, std::min(length, left)));
  }
}

}  // namespace

void plan_of_replicates(const EstimatorParts& parts, const Problem& problem, int64_t num_problems,
                        TunedState& state) {
  const Replicates replicates(parts, problem, num_problems);
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, kSharedStream);
  std::shared_ptr<const ScheduleRule> rule = parts.rule;
  int64_t chains = parts.options.chains;
  if (parts.options.budget) {
    const auto [steps, affordable] = replicates.steps_and_chains(
        *parts.options.budget - replicates.of_all(state.fitting + state.tuning) -
            replicates.witness(/*has_moves=*/true),
        replicates.pilots_per_chain);
    rule = parts.make_rule(steps);
    chains = affordable;
  }
  PilotRun pilot = replicates.tuned(*rule, chains, parts.options.budget.has_value(), rng);
  state.plan = std::move(pilot.plan);
  state.tuning += pilot.run.cost;
}

void plan_by_rounds(const EstimatorParts& parts, const Problem& problem, int64_t num_problems,
                    TunedState& state) {
  RoundRunner runner(parts, problem, num_problems, state);
  Rounds& rounds = state.rounds;
  try {
    state.plan = rounds_to_plan(parts, runner, rounds);
    rounds.last.reset();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted || !rounds.last) throw;
    for (int64_t& flags : rounds.last->flags) flags |= kMissedTarget;
    rounds.last->method = parts.options.methods.front();
    state.is_cut = true;
  }
}

}  // namespace crais
