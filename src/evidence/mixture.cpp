// Normals that cover a density of any shape: several modes, ridges, funnels. Each normal is a part
// of a partition of unity whose density is nearly normal. The parts' normalisers add up to Z.
//
// Trials by chains compare the modes that a search finds with normals fitted to particles. Each
// estimate is a lower bound on average, so the highest is the best. Particles settle under the
// target, new normals are fitted to them, and a trial says whether these are better. Draws that a
// fit has not seen choose its normals, and a bijection that straightens a funnel's neck, a banana,
// or coordinates with modes of their own. Curvatures show funnels without draws.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bases/climb.h"
#include "bases/normal_mixture.h"
#include "core/log_math.h"
#include "core/plan_error.h"
#include "core/rng.h"
#include "core/transition.h"
#include "evidence/fits.h"
#include "samplers/coupled.h"
#include "samplers/plan.h"
#include "samplers/settling.h"
#include "targets/partitioned.h"
#include "targets/transformed.h"
#include "util/error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

// Groups of a trial's chains, and chains of each part in a group. The groups' spread is the error
// of the trial, so too few of them would let lucky trials win.
constexpr int64_t kFewestOfTrial = 4, kMostGroups = 16;

using MaybeBijection = std::shared_ptr<const Bijection>;  // null: the identity

at::Tensor in_coordinates(const MaybeBijection& bijection, const at::Tensor& z) {
  return bijection ? bijection->to_u(z) : z;
}

enum class Kind { kNone, kCoupling, kSpline, kBoth };

/// Bijections fitted to draws. A coupling, which takes the longest, is fitted once.
class BijectionFits {
 public:
  BijectionFits(const at::Tensor& draws, const Funnels& funnels)
      : draws_(draws),
        with_funnels_(at::cat({draws, funnels.draws.select(1, 0)})),
        funnels_(funnels) {}

  const Funnels& funnels() const { return funnels_; }
  /// The draws to which those of this kind are fitted.
  const at::Tensor& draws_for(Kind kind) const {
    return kind == Kind::kCoupling || kind == Kind::kBoth ? with_funnels_ : draws_;
  }

  /// Null if the draws do not ask for this kind. What seems heavy tails of a coordinate is often a
  /// scale that depends on another one: splines come after a coupling. Draws are rare in a neck, so
  /// the coordinates that lead there get heavy tails.
  MaybeBijection of(Kind kind) {
    if (kind == Kind::kNone) return {};
    if (kind == Kind::kSpline) return fit_spline(draws_);
    if (!coupling_)
      coupling_ = fit_coupling(at::cat({draws_, funnels_.draws.flatten(0, 1)}), funnels_);
    const auto& coupling = *coupling_;
    if (!coupling) return {};
    SplineOptions options{.is_heavy = coupling->drives()};
    if (kind == Kind::kCoupling) options.most_normals = 1;
    const auto after = fit_spline(coupling->to_u(with_funnels_), options);
    if (!after) return coupling;
    return std::make_shared<Composition>(coupling, after);
  }

 private:
  at::Tensor draws_, with_funnels_;
  Funnels funnels_;
  std::optional<std::shared_ptr<const Coupling>> coupling_;
};

/// Normals in coordinates u, with z = T(u).
struct Normals {
  AffineMap map;         // [J]
  at::Tensor log_share;  // [J]
  MaybeBijection bijection = {};

  at::Tensor to_z(const at::Tensor& u) const { return bijection ? bijection->to_z(u) : u; }
  at::Tensor to_u(const at::Tensor& z) const { return in_coordinates(bijection, z); }
};

/// Normals as the target of their parts and as the base of each part.
struct Parts {
  Normals normals;
  Partition partition;  // of one problem
  std::shared_ptr<const PartitionedTarget> target;

  Parts(const Target& one, const Normals& found)
      : normals(found),
        partition{at::zeros({found.map.num_problems()}, found.log_share.options().dtype(at::kLong)),
                  found.log_share, 1} {
    const auto whole = transformed(one.shared(), found.bijection);
    target = std::make_shared<PartitionedTarget>(*whole, found.map, partition);
  }
};

/// The result of a trial of some normals.
struct Trial {
  std::shared_ptr<const Parts> parts;
  double value = -std::numeric_limits<double>::infinity();  // estimate of log Z, nats
  double error = 0;
  at::Tensor step_sizes;  // [J] float64: of each part at its end
  bool may_miss = false;  // the search that gave the parts may have missed modes

  bool may_reach(double other) const { return value + error > other; }
  /// True if this is the better trial: the more certain one, unless the other is clearly higher.
  /// Modes whose search may have missed others lose against any higher trial.
  bool beats(const Trial& other) const {
    if (!std::isfinite(value) || !std::isfinite(other.value)) return std::isfinite(value);
    if (other.may_miss && !may_miss && value - error > other.value) return true;
    const double gain = value - other.value;
    return error > other.error ? gain > kErrors * error : gain > -kErrors * other.error;
  }

  static constexpr double kErrors = 4;  // that are no chance
};

/// The weighted particles of all trials. A trial that found mass which others missed gets a greater
/// weight than theirs, however uncertain its value.
class Pool {
 public:
  /// Adds particles z [N,D]. The sum of their weights exp(log_w), [N] float64, estimates Z.
  void add(const at::Tensor& z, const at::Tensor& log_w) {
    const at::Tensor weights =
        at::where(log_w.isnan(), -std::numeric_limits<double>::infinity(), log_w);
    visited_ = visited_.defined() ? at::cat({visited_, z}) : z;
    z_ = z_.defined() ? at::cat({z_, z}) : z;
    log_w_ = log_w_.defined() ? at::cat({log_w_, weights}) : weights;
  }

  /// All particles that were ever added, [N,D].
  const at::Tensor& visited() const { return visited_; }

  /// `count` particles of equal weight, [count,D]. The greatest weights, as many as a quarter of
  /// `count`, are clipped to the least of them: the descendants of a lucky particle would say
  /// little of the density's shape. Particles of no weight to speak of stay so.
  ///                                                                  [Koblents & Miguez 2015]
  at::Tensor draws(int64_t count, at::Generator& rng) const {
    constexpr double kMostClipped = 10;  // nats
    const int64_t greatest = std::min((count + 3) / 4, log_w_.size(0));
    const at::Tensor limit =
        at::maximum(std::get<0>(log_w_.topk(greatest)).min(), log_w_.max() - kMostClipped);
    return resampled(z_, at::minimum(log_w_, limit), count, rng);
  }

  /// Replaces all particles by `z`, which get the total weight of the old ones.
  void replace(const at::Tensor& z) {
    const at::Tensor each = at::logsumexp(log_w_, 0) - std::log(static_cast<double>(z.size(0)));
    z_ = z;
    log_w_ = each.expand({z.size(0)});
  }

 private:
  at::Tensor z_, log_w_, visited_;
};

/// The state of the fit of one problem.
struct Search {
  const Target& one;
  at::Generator& rng;
  Cost cost;
  Pool pool;
  bool splines_hold = false;  // a trial with splines of modes may have been the highest
};

class Mixture : public BaseRule {
 public:
  Mixture(int64_t particles, int64_t rounds, double widening, const BaseOptions& options)
      : particles_(particles), rounds_(rounds), widening_(widening), options_(options) {}

  Base build(const Target& target, at::Generator& rng) const override {
    const c10::NoGradGuard no_grad;
    if (!target.traits().can_select) return make_base("pilot")->build(target, rng);
    std::vector<Base> fits;
    for (int64_t p = 0; p < target.num_problems(); ++p)
      fits.push_back(fitted(*target.slice(p, p + 1), rng));
    return together(fits);
  }

 private:
  static constexpr int64_t kSteps = 32;       // of a trial
  static constexpr int64_t kMostSteps = 256;  // of one whose particles decide on them
  static constexpr int64_t kMoreRounds = 7;   // while each gains more than kClear
  static constexpr int64_t kRefit = 0;        // in place of a number of normals
  static constexpr double kSmall = 0.02, kCertain = 0.05, kVague = 0.2, kClear = 0.3;  // nats
  static constexpr double kFar = 5;  // nats of the density above its normals

  Base fitted(const Target& one, at::Generator& rng) const {
    if (one.dim() > kManyDims) return fit_many_dims(one, options_, particles_, rng);
    Search search{one, rng, {}, {}}, again{one, rng, {}, {}};
    bool differ = false;
    const bool has_draws = one.traits().draws.has_value();
    Trial best = has_draws ? by_draws(search, differ) : searched(search);
    if (!has_draws) improve(search, best);
    Trial second = searched(again);
    improve(again, second);
    search.cost += again.cost;
    const auto draws = [&](const Search& of) { return of.pool.draws(particles_, rng); };
    const bool both = std::isfinite(best.value) && std::isfinite(second.value);
    const bool lack =
        has_draws && both &&
        (contradict(best, second, /*either_way=*/false) || lacks(best, draws(again), search));
    if (second.beats(best)) std::swap(best, second);
    best.may_miss = has_draws ? lack : best.may_miss || contradict(best, second);
    if (both) {
      best = completed(best, at::cat({search.pool.visited(), again.pool.visited()}), search);
      best.may_miss |= lacks(best, at::cat({draws(search), draws(again)}), search);
    }
    if (!best.parts) return Base(first_guess(one));
    const Normals& normals = best.parts->normals;
    const at::TensorOptions wide = one.options().dtype(at::kDouble);
    Base base(normals.map, at::zeros({1}, wide.dtype(at::kBool)), search.cost);
    base.bijection = normals.bijection;
    base.ambiguous = at::full({1}, best.may_miss, wide.dtype(at::kBool));
    base.partition = best.parts->partition;
    if (has_draws) base.apart = at::full({1}, differ, wide.dtype(at::kBool));
    return base;
  }

  /// What the draws of somebody's chains ask for: one normal, or the best fit. `differ` says if the
  /// chains do.
  Trial by_draws(Search& search, bool& differ) const {
    at::Tensor draws = search.one.traits().draws->to(at::kCPU, at::kDouble);  // [C,N,D]
    // Halves of a single chain count as chains.
    if (draws.size(0) == 1) draws = draws.slice(1, draws.size(1) % 2).view({2, -1, draws.size(2)});
    draws = draws.slice(1, 0, {}, 1 + draws.size(0) * draws.size(1) / 4096);
    const at::Tensor in_time = draws.transpose(0, 1).flatten(0, 1);
    Trial whole = attempt([&] { return tried(search, one_normal(in_time, {}, search)); });
    if (!whole.parts) return whole;
    differ = are_apart(draws, whole, search);
    search.splines_hold = true;
    const auto fit = [&] { return tried(search, best_fit(in_time.unsqueeze(0), whole, search)); };
    const Trial fitted = attempt(fit);
    return fitted.beats(whole) ? fitted : whole;
  }

  /// True if coupled chains from draws [C,N,D] of different chains meet less often than such from
  /// draws of one chain, and chance does not explain it.
  static bool are_apart(const at::Tensor& draws, const Trial& trial, Search& search) {
    // 128 pairs of either kind.
    const int64_t each = std::clamp<int64_t>(128 / draws.size(0), 1, (draws.size(1) + 1) / 2);
    at::Generator host = on_host(search);
    const at::Tensor order =
        fill_uniform(at::empty({draws.size(1)}, draws.options()), host).argsort();
    const at::Tensor first = draws.index_select(1, order.slice(0, 0, each)),
                     same = draws.index_select(1, order.slice(0, draws.size(1) - each));
    const Problem problem(search.one.shared(), trial.parts->normals.map);
    const auto starts = [&](const at::Tensor& one, const at::Tensor& two) {
      const at::Tensor z = at::stack({one, two}).flatten(0, 2).unsqueeze(0);
      return problem.base().to_e(z.to(search.one.options()));
    };
    const CoupledDraws pairs =
        coupled_draws(problem, trial.step_sizes, /*base_share=*/0, starts(first, first),
                      starts(same, same.roll(1, 0)), /*lag=*/1, search.rng);
    search.cost += pairs.cost;
    const at::Tensor share = pairs.moves.isfinite().to(at::kDouble).view({2, -1}).mean(1);
    const auto count = 0.5 * static_cast<double>(pairs.moves.numel());
    const double variance = (share * (1 - share)).sum().item<double>() + 1 / count;
    return (share[0] - share[1]).item<double>() > Trial::kErrors * std::sqrt(variance / count);
  }

  /// True if errors do not explain how far two trials differ: what one has missed, both may miss.
  /// Not `either_way`: only if the first is lower.
  static bool contradict(const Trial& a, const Trial& b, bool either_way = true) {
    const double chance = Trial::kErrors * std::hypot(a.error, b.error), apart = b.value - a.value;
    return std::isfinite(apart) &&
           (either_way ? std::abs(apart) : apart) > std::max(kVague, chance);
  }

  /// How many nats the density is above the normals of `trial` at u [N,D], in their coordinates:
  /// [N]. Cost: a density for each.
  static at::Tensor above(const Trial& trial, const at::Tensor& u, Search& search) {
    search.cost += Cost{u.size(0), 0};
    const auto whole = transformed(search.one.shared(), trial.parts->normals.bijection);
    return (on_cpu(whole->log_density(u.unsqueeze(0)).flatten()) - trial.value -
            log_density(normals_of(*trial.parts), on_cpu(u)))
        .nan_to_num(-INFINITY, -INFINITY);
  }

  /// True if the normals of `trial` lack mass where draws z [N,D] of the density are.
  static bool lacks(const Trial& trial, const at::Tensor& z, Search& search) {
    const at::Tensor far = above(trial, trial.parts->normals.to_u(z), search) > kFar;
    return far.to(at::kDouble).mean().item<double>() > kCertain;
  }

  /// `best` with a normal at each mode to which climbs lead from particles z `visited` [N,D] where
  /// the density is far above its normals: chains meet modes that no climb has met. Cost: a density
  /// for each particle; where there are such modes, climbs and a trial.
  Trial completed(const Trial& best, const at::Tensor& visited, Search& search) const {
    constexpr int64_t kStarts = 64;
    const Normals& normals = best.parts->normals;
    const at::Tensor u = normals.to_u(visited);
    const auto [highest, place] = above(best, u, search).topk(std::min(kStarts, u.size(0)));
    const at::Tensor from = u.index_select(0, place.masked_select(highest > kFar).to(u.device()));
    if (from.size(0) == 0) return best;
    NormalMixture known = normals_of(*best.parts);
    known = {known.loc, known.root / widening_, known.log_share + best.value};
    const auto whole = transformed(search.one.shared(), normals.bijection);
    const NormalMixture all = with_modes(*whole, known, from, kFar, kSmall, search.cost);
    if (all.size() == known.size()) return best;
    Trial next = attempt([&] {
      return tried(search, widened({normals.bijection, all}, search.one));
    });
    next.may_miss = best.may_miss || contradict(best, next);
    return next.value > best.value ? next : best;
  }

  /// The best trial of normals at modes, of splines of all modes, and of particles from the prior.
  Trial searched(Search& search) const {
    const Base modes = make_modes({}, options_)->build(search.one, search.rng);
    search.cost += modes.cost;
    const Normals normals{modes.map.widened(widening_), modes.log_share()};
    Trial best;
    if (is_nearly_normal(search.one, modes, particles_, search.rng, search.cost)) {
      best.parts = std::make_shared<Parts>(search.one, normals);
      return best;
    }
    best = attempt([&] { return tried(search, normals); });
    best.may_miss = modes.ambiguous.any().item<bool>();
    const Trial by_splines = from_modes(modes, best, search), by_prior = from_prior(search);
    search.splines_hold = by_splines.may_reach(std::max(best.value, by_prior.value));
    for (const Trial& rough : {by_splines, by_prior})
      if (rough.beats(best)) best = rough;
    return best;
  }

  /// What `trial` returns; a trial that every other beats if the density refuses to start there.
  template <class Function>
  static Trial attempt(const Function& trial) {
    try {
      return trial();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      return {};
    }
  }

  /// Rounds of settling, fit and trial, while they gain.
  void improve(Search& search, Trial& best) const {
    if (!std::isfinite(best.value)) return;
    const int64_t most = rounds_ > 0 ? rounds_ + kMoreRounds : 0;
    for (int64_t round = 1; round <= most; ++round) {
      const at::Tensor draws = settled(best, search);
      Trial next = attempt([&] { return tried(search, best_fit(draws, best, search)); });
      const double gain = next.value - best.value;
      const bool has_settled = best.error < kCertain && gain < kSmall;
      if (next.beats(best)) best = std::move(next);
      if (has_settled || (round >= rounds_ && !(gain > kClear))) return;
    }
  }

  /// A fit of some normals to draws z [S,K,D] of K particles, or a refit of those present: the one
  /// whose mean log density is highest at draws that it has not seen. The divergence from the
  /// target to the normals has the same order. More normals must be worth it, because they share
  /// the chains, and so must a bijection. Cost: that of find_funnels.
  Normals best_fit(const at::Tensor& draws, const Trial& present, Search& search) const {
    const Parts& parts = *present.parts;
    at::Generator host = on_host(search);
    // Particles next to each other often have a common ancestor, so they belong together.
    const int64_t half = draws.size(1) / 2;
    const at::Tensor train = draws.slice(1, 0, half).flatten(0, 1),
                     test = draws.slice(1, half).flatten(0, 1), all = draws.flatten(0, 1);
    const int64_t num_parts = parts.partition.num_parts();
    BijectionFits bijections = bijections_of(search, train, test, parts, host);
    BijectionFits whole(all, bijections.funnels());
    double highest = -std::numeric_limits<double>::infinity();
    int64_t best = 1;
    Kind best_kind = Kind::kNone;
    for (const Kind kind : kinds_for(present.error < kVague || search.splines_hold)) {
      const MaybeBijection found = bijections.of(kind);
      if (!found && kind != Kind::kNone) continue;
      double before = -std::numeric_limits<double>::infinity();
      for (const int64_t count : std::vector<int64_t>{1, 2, 4, 8, 16, kRefit}) {
        if (count == kRefit ? num_parts == 1 : !found && count != 1 && count < num_parts) continue;
        stop_if_interrupted();
        const double height =
            mean_log_density(fit(bijections.draws_for(kind), found, count, parts, host), test);
        if (found && height < before) break;  // in straight coordinates more would not come back
        before = height;
        if (!(height > highest + kWorthwhile)) continue;
        highest = height;
        best = count;
        best_kind = kind;
      }
    }
    return widened(fit(whole.draws_for(best_kind), whole.of(best_kind), best, parts, host),
                   search.one);
  }

  /// Bijections that know the funnels of the density, unless their coupling describes draws `test`
  /// worse than one that is fitted to draws `train` alone.
  BijectionFits bijections_of(Search& search, const at::Tensor& train, const at::Tensor& test,
                              const Parts& parts, at::Generator& host) const {
    BijectionFits blind(train, no_funnels(train));
    if (!options_.one_density) return blind;
    BijectionFits knowing(train, find_funnels(search.one, train, host, search.cost));
    if (!knowing.funnels().drivers.any().item<bool>()) return blind;
    const auto height = [&](BijectionFits& fits) {
      const MaybeBijection coupling = fits.of(Kind::kCoupling);
      return mean_log_density(fit(fits.draws_for(Kind::kCoupling), coupling, 1, parts, host), test);
    };
    return height(blind) > height(knowing) + kWorthwhile ? blind : knowing;
  }

  /// The kinds of bijections that a fit may have. A coupling also holds where there were no draws.
  /// Splines are bound to the draws, which must not be astray. A bijection belongs to all problems:
  /// they must be replicates.
  std::vector<Kind> kinds_for(bool with_splines) const {
    if (!options_.one_density) return {Kind::kNone};
    if (!with_splines) return {Kind::kNone, Kind::kCoupling};
    return {Kind::kNone, Kind::kCoupling, Kind::kSpline, Kind::kBoth};
  }

  /// A normal in the coordinates of splines that are fitted to all modes alike, light ones too.
  /// Where each of many coordinates has modes of its own, their combinations are too many for
  /// normals. A vague trial that may be as high as `by_normals` is repeated with more steps.
  Trial from_modes(const Base& modes, const Trial& by_normals, Search& search) const {
    constexpr int64_t kFew = 4;
    at::Tensor loc = modes.map.loc(), root = modes.map.matrix();
    if (modes.light_modes) {
      loc = at::cat({loc, modes.light_modes->loc()});
      root = at::cat({root, modes.light_modes->matrix()});
    }
    const int64_t count = loc.size(0), each = std::max<int64_t>(1, particles_ / count);
    if (!options_.one_density || count < kFew) return {};
    const at::Tensor e = at::empty({count, each, search.one.dim()}, search.one.options());
    const at::Tensor draws = AffineMap(loc, root)
                                 .to_z(fill_normal(e, search.rng))
                                 .flatten(0, 1)
                                 .to(at::kCPU, at::kDouble);
    const auto spline = fit_spline(draws);
    if (!spline) return {};
    const Normals normals = one_normal(draws, spline, search);
    return attempt([&] {
      Trial trial = tried(search, normals);
      if (trial.error > kVague && trial.may_reach(by_normals.value))
        trial = tried(search, normals, "linear", 3 * kSteps);
      trial.may_miss = by_normals.may_miss;
      return trial;
    });
  }

  /// SMC from the prior, and the moments of where it ends. Many equal steps suit densities that are
  /// hard near the end. A likelihood that is sharp in the prior takes steps of many sizes, and the
  /// particles decide on these; unless they ask for too many.
  Trial from_prior(Search& search) const {
    return attempt([&] {
      const AffineMap prior = search.one.prior_base();
      const at::Tensor share = at::zeros({1}, search.one.options().dtype(at::kDouble));
      Trial start = tried(search, {prior, share}, "linear", 3 * kSteps);
      try {
        Trial adaptive = tried(search, {prior, share}, "cess:0.9", kMostSteps);
        if (adaptive.beats(start)) start = std::move(adaptive);
      } catch (const ScheduleError& error) {
        search.cost += error.spent;
      }
      const at::Tensor z = search.pool.draws(particles_, search.rng).to(at::kCPU, at::kDouble);
      Trial trial = tried(search, one_normal(z, {}, search));
      return trial.beats(start) ? trial : start;
    });
  }

  /// One normal that is fitted to draws z on the CPU, in the coordinates of a bijection.
  Normals one_normal(const at::Tensor& z, const MaybeBijection& in, Search& search) const {
    at::Generator host = on_host(search);
    return widened({in, fit_normals(in_coordinates(in, z), 1, host)}, search.one);
  }

  Trial tried(Search& search, const Normals& normals, const std::string& schedule = "linear",
              int64_t most_steps = kSteps) const {
    Trial trial;
    trial.parts = std::make_shared<Parts>(search.one, normals);
    const int64_t parts = normals.map.num_problems();
    const int64_t groups =
        std::clamp(particles_ / parts / kFewestOfTrial, kFewestOfTrial, kMostGroups);
    const int64_t chains = std::max(kFewestOfTrial, particles_ / parts / groups);
    // Groups are separate rows: resampling would make them dependent.
    const at::Tensor rows =
        at::arange(parts, trial.parts->partition.problem.options()).repeat_interleave(groups);
    const Problem problem(trial.parts->target->select(rows), normals.map.select(rows));
    ScheduleOptions of{.steps = most_steps};
    const auto rule = ScheduleRegistry::instance().make("schedule", schedule, of);
    PilotOptions options{.num_particles = chains, .max_steps = most_steps};
    options.shared = rule->is_adaptive();  // few chains a group would say little of temperatures
    options.resampling = resampling_.get();
    const PilotRun run = run_pilot(problem, *path_, *rule, *transition_, options, search.rng);
    search.cost += run.run.cost;
    const at::Tensor steps = run.plan.step_sizes[-1].to(problem.base().options().device());
    trial.step_sizes = steps.expand({parts * groups}).view({parts, groups}).log().mean(1).exp();
    const at::Tensor log_w = run.run.log_w;  // [JG,K]
    const at::Tensor of_parts = log_mean_exp(log_w).view({parts, groups});
    const at::Tensor totals = at::logsumexp(of_parts, 0);  // [G]
    trial.value = totals.mean().item<double>();
    trial.error = error_of(totals, of_parts);
    search.pool.add(normals.to_z(problem.base().to_z(run.run.particles.e).flatten(0, 1)),
                    log_w.flatten() - std::log(static_cast<double>(groups * chains)));
    return trial;
  }

  /// The standard error of a trial, nats: from the totals of its groups, or from the variances of
  /// its parts, which are independent of each other, if these give a larger error.
  static double error_of(const at::Tensor& totals, const at::Tensor& of_parts) {
    const at::Tensor relative = (of_parts - log_mean_exp(totals)).exp();
    const double by_parts = relative.var(1).sum().item<double>();
    const double by_totals = totals.var().item<double>();
    return std::sqrt(std::max(by_parts, by_totals) / static_cast<double>(totals.size(0)));
  }

  /// A generator for fits on the CPU, seeded from the generator of the search.
  static at::Generator on_host(Search& search) {
    const at::TensorOptions wide = search.one.options().dtype(at::kDouble);
    const at::Tensor u = fill_uniform(at::empty({1}, wide), search.rng);
    return make_generator(static_cast<uint64_t>(u.item<double>() * 0x1p53));
  }

  /// Lets particles of the pool settle, and replaces the pool by them. Returns the particles that
  /// they passed through, [S,K,D] float64 on the CPU.
  at::Tensor settled(const Trial& trial, Search& search) const {
    constexpr int64_t kSweeps = 6;
    const Normals& normals = trial.parts->normals;
    const at::Tensor u = normals.to_u(search.pool.draws(particles_, search.rng));
    const Settled result = settle(*trial.parts->target, normals.map, u, trial.step_sizes,
                                  *transition_, kSweeps, search.rng);
    search.cost += result.cost;
    search.pool.replace(normals.to_z(result.z));
    return normals.to_z(result.passed).to(at::kCPU, at::kDouble).view({-1, particles_, u.size(1)});
  }

  /// Normals on the CPU, in the coordinates of a bijection if there is one.
  struct Fitted {
    MaybeBijection bijection;
    NormalMixture normals;
  };

  static Fitted fit(const at::Tensor& z, const MaybeBijection& in, int64_t count,
                    const Parts& parts, at::Generator& host) {
    const at::Tensor u = in_coordinates(in, z);
    if (count != kRefit) return {in, fit_normals(u, count, host)};
    return {in, refit_normals(u, responsibilities(normals_of(parts), in_parts(z, parts)))};
  }

  static double mean_log_density(const Fitted& fit, const at::Tensor& z) {
    const at::Tensor u = in_coordinates(fit.bijection, z), height = log_density(fit.normals, u);
    return (fit.bijection ? height - fit.bijection->log_abs_det(u) : height).mean().item<double>();
  }

  /// Draws z on the CPU in the coordinates of the parts.
  static at::Tensor in_parts(const at::Tensor& z, const Parts& parts) {
    const MaybeBijection& bijection = parts.normals.bijection;
    return bijection ? bijection->to(z.options())->to_u(z) : z;
  }

  static NormalMixture normals_of(const Parts& parts) {
    const AffineMap& map = parts.normals.map;
    return {on_cpu(map.loc()), on_cpu(map.matrix()), on_cpu(parts.normals.log_share)};
  }

  Normals widened(const Fitted& fit, const Target& one) const {
    const at::TensorOptions options = one.options();
    const AffineMap map(fit.normals.loc.to(options), fit.normals.root.to(options).tril());
    Normals normals{map.widened(widening_), fit.normals.log_share.to(options.device())};
    if (fit.bijection) normals.bijection = fit.bijection->to(options);
    return normals;
  }

  int64_t particles_, rounds_;
  double widening_;
  BaseOptions options_;
  std::shared_ptr<const Path> path_ = PathRegistry::instance().make("path", "geometric");
  std::shared_ptr<const Transition> transition_ =
      TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
  std::shared_ptr<const Resampling> resampling_ =
      ResamplingRegistry::instance().make("resampling", "systematic:0.5");
};

const Enrol<BaseRegistry> kEnrolMixtureBase(
    "mixture[:N]",
    "normals that cover a density of any shape, fitted to N = 384 particles that have settled and "
    "to the modes of a search; those of one density may lie in other coordinates; "
    "chains start from every one, and their estimates add up (rounds=3, widening=1.1)",
    "mixture:16,rounds=1", [](Spec& spec, const BaseOptions& options) {
      const int64_t particles = spec.integer("particles", 16, 100'000, 384);
      const int64_t rounds = spec.integer("rounds", 0, 100, 3);
      return std::make_unique<Mixture>(particles, rounds, spec.number("widening", 0.1, 10.0, 1.1),
                                       options);
    });

}  // namespace
}  // namespace crais
