// The Laplace approximation: a Gaussian at the mode, whose precision is the curvature at the mode.
//                                                      [Tierney & Kadane 1986; MacKay 2003, ch. 27]
//
// Damped Newton steps d = H^-1 g on log gamma. A curvature costs as much as tens of evaluations, so
// several steps share one (Shamanskii's method): the more expensive the curvature, the more steps.
// One evaluation follows each step. A step that does not climb is undone and halved. The last
// curvature is the precision of the base.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "bases/climb.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr int64_t kFirstStarts = 4;  // if these agree on a mode, no further climbs start

/// The ends of climbs, S for each problem.
class Ends {
 public:
  explicit Ends(const std::vector<Mode>& climbs) {
    const auto stacked = [&](at::Tensor Mode::*field) {
      std::vector<at::Tensor> all;
      all.reserve(climbs.size());
      for (const Mode& climb : climbs) all.push_back(climb.*field);
      return at::stack(all, 1);
    };
    z_ = stacked(&Mode::z);
    root_ = stacked(&Mode::root);
    failed_ = stacked(&Mode::failed);
    log_mass_ = stacked(&Mode::log_mass).nan_to_num(kNothing).masked_fill(failed_, kNothing);
  }

  /// Adds ends for the problems at `index`, and failures for all other problems.
  void add(const at::Tensor& index, const Ends& more) {
    const auto join = [&](at::Tensor& all, const at::Tensor& values, double otherwise) {
      std::vector<int64_t> shape = values.sizes().vec();
      shape[0] = all.size(0);
      all =
          at::cat({all, at::full(shape, otherwise, all.options()).index_copy(0, index, values)}, 1);
    };
    join(z_, more.z_, 0);
    join(root_, more.root_, 0);
    join(failed_, more.failed_, 1);
    join(log_mass_, more.log_mass_, kNothing);
  }

  /// True, [P] bool, if all climbs ended at one mode.
  at::Tensor agree() const {
    return (mutual_distances(z_, root_) < farthest_of_one_mode(z_.size(2))).flatten(1).all(-1) &
           ~failed_.any(-1);
  }

  /// A normal at the heaviest mode of each problem, and a part for each of its rivals; `guess` if
  /// all climbs failed. Problems are `ambiguous` if they have rivals but the target cannot be cut
  /// into parts, or if two or more modes were seen only once.
  Base base(const AffineMap& guess, double widening, bool can_have_parts, Cost cost) const {
    const at::Tensor order =
        std::get<1>(log_mass_.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true));
    const at::Tensor mass = log_mass_.gather(1, order), z = in_order(z_, order),
                     root = in_order(root_, order), failed = failed_.gather(1, order);
    const at::Tensor far = far_apart(z, root), kept = rivals(mass, far, failed);
    const at::Tensor none = failed.select(1, 0), several = kept.sum(1) > 1;
    const auto fit = [&](const at::Tensor& rows, const at::Tensor& problem) {
      const at::Tensor keeps_guess = none.index_select(0, problem);
      return AffineMap(
          at::where(keeps_guess.unsqueeze(1), guess.loc().index_select(0, problem),
                    z.flatten(0, 1).index_select(0, rows)),
          at::where(keeps_guess.view({-1, 1, 1}), guess.matrix().index_select(0, problem),
                    widening * root.flatten(0, 1).index_select(0, rows)));
    };
    const bool has_parts = can_have_parts && several.any().item<bool>();
    const at::Tensor used =
        has_parts ? kept : (at::arange(kept.size(1), order.options()) == 0).expand_as(kept);
    const at::Tensor rows = at::nonzero(used.flatten()).flatten();
    const at::Tensor problem = at::floor_divide(rows, used.size(1));
    Base base(fit(rows, problem), none, cost);
    if (has_parts)
      base.partition =
          Partition::by_mass(problem, mass.flatten().index_select(0, rows), used.size(0));
    base.ambiguous = can_have_parts ? seen_once(kept, far, failed) > 1 : several;
    return base;
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  /// Reorders values [P,S,...] by `order` [P,S].
  static at::Tensor in_order(const at::Tensor& values, const at::Tensor& order) {
    std::vector<int64_t> shape(static_cast<size_t>(values.dim()), 1);
    shape[0] = order.size(0);
    shape[1] = order.size(1);
    return values.gather(1, order.view(shape).expand_as(values));
  }

  /// True, [P,S,S] bool, if two ends are far apart in units of either width.
  static at::Tensor far_apart(const at::Tensor& z, const at::Tensor& root) {
    const at::Tensor far = mutual_distances(z, root) > 9.0 + static_cast<double>(z.size(2));
    return far & far.transpose(1, 2);
  }

  /// True, [P,S] bool, for the heaviest mode and for modes of comparable mass far from all before
  /// them.
  static at::Tensor rivals(const at::Tensor& mass, const at::Tensor& far,
                           const at::Tensor& failed) {
    constexpr double kComparable = 3.0;  // nats: a mode at the limit holds a twentieth of the mass
    std::vector<at::Tensor> kept = {at::ones_like(failed.select(1, 0))};
    for (int64_t s = 1; s < mass.size(1); ++s) {
      at::Tensor keep =
          ~failed.select(1, s) & (mass.select(1, 0) - mass.select(1, s) < kComparable);
      for (int64_t before = 0; before < s; ++before)
        keep = keep & (~kept[static_cast<size_t>(before)] | far.select(1, before).select(1, s));
      kept.push_back(keep);
    }
    return at::stack(kept, 1);
  }

  /// The number [P] of kept modes that no other climb has come near.
  static at::Tensor seen_once(const at::Tensor& kept, const at::Tensor& far,
                              const at::Tensor& failed) {
    const at::Tensor company = ~far & ~failed.unsqueeze(1);  // includes the mode itself
    return (kept & (company.sum(2) == 1)).sum(1);
  }

  at::Tensor z_, root_, log_mass_, failed_;  // [P,S,D], [P,S,D,D], [P,S] float64, [P,S] bool
};

class Laplace : public BaseRule {
 public:
  Laplace(double widening, int64_t rounds, int64_t starts, int64_t finalists, double until)
      : widening_(widening),
        rounds_(rounds),
        starts_(starts),
        finalists_(finalists),
        until_(until) {}

  Base build(const Target& target, at::Generator& rng) const override {
    Cost cost;
    const int64_t first = target.can_select() ? first_starts() : starts_;
    Ends ends = search(target, 0, first, rng, cost);
    if (first < starts_) {
      const at::Tensor index = at::nonzero(~ends.agree()).flatten();
      if (index.numel() > 0)
        ends.add(index, search(*target.select(index), first, starts_, rng, cost));
    }
    return ends.base(first_guess(target), widening_, target.can_select(), cost);
  }

  /// The cost if the first starts disagree.
  std::optional<double> expected_cost(const Target& target) const override {
    const int64_t first = target.can_select() ? first_starts() : starts_;
    return static_cast<double>(search_cost(target, 0, first) +
                               (first < starts_ ? search_cost(target, first, starts_) : 0));
  }

 private:
  int64_t rounds_of(const Target& target) const {
    return rounds_ > 0 ? rounds_ : target.amortised_base() ? 2 : 8;
  }

  /// The number of first starts: all starts, unless most will be dropped after one round.
  int64_t first_starts() const {
    return finalists_ < starts_ ? std::min(starts_, std::max(kFirstStarts, finalists_)) : starts_;
  }

  /// Single draws can find modes of small mass; the best of many draws finds sharp modes.
  static int64_t draws_of(int64_t start) { return start % 2 == 0 ? 1 : kDrawsAStart; }

  int64_t search_cost(const Target& target, int64_t begin, int64_t end) const {
    const int64_t steps = steps_a_round(target), curvature = target.curvature_cost();
    int64_t cost = 0, rounds = rounds_of(target), climbs = end - begin;
    for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i) cost += draws_of(i);
    for (; climbs > finalists_ && rounds > 1; --rounds) {
      cost += climbs * (1 + curvature + steps);
      climbs = std::max((climbs + 3) / 4, finalists_);
    }
    if (until_ > 0) rounds = std::min(rounds, kUsualRounds);
    return cost + climbs * (1 + rounds * (curvature + steps));
  }

  /// Climbs from the starts with numbers `begin` to `end`. Number 0 is the first guess.
  Ends search(const Target& target, int64_t begin, int64_t end, at::Generator& rng,
              Cost& cost) const {
    std::vector<at::Tensor> starts;
    for (int64_t i = begin; i < end; ++i)
      starts.push_back(i == 0 ? first_guess(target).loc()
                              : most_probable_draw(target, draws_of(i), rng, cost));
    int64_t rounds = rounds_of(target);
    while (static_cast<int64_t>(starts.size()) > finalists_ && rounds > 1) {
      starts = highest(target, starts, cost);
      --rounds;
    }
    std::vector<Mode> climbs;
    climbs.reserve(starts.size());
    for (const at::Tensor& start : starts)
      climbs.push_back(climb(target, start, rounds, until_, cost));
    return Ends(climbs);
  }

  /// The quarter of the starts, [P,D] each, that is highest for each problem after one round,
  /// highest first; at least finalists_ starts.
  std::vector<at::Tensor> highest(const Target& target, const std::vector<at::Tensor>& starts,
                                  Cost& cost) const {
    std::vector<at::Tensor> ends, heights;
    for (const at::Tensor& start : starts) {
      Climb climb(target, start);
      climb.steps(climb.curvature().covariance_root, steps_a_round(target));
      ends.push_back(climb.z());
      heights.push_back(climb.log_density().nan_to_num(-std::numeric_limits<double>::infinity()));
    }
    const auto climbs = static_cast<int64_t>(starts.size());
    cost += Cost::with_gradient(climbs * target.num_problems() *
                                (1 + target.curvature_cost() + steps_a_round(target)));
    const int64_t quarter = (static_cast<int64_t>(starts.size()) + 3) / 4;
    const at::Tensor order = std::get<1>(
        at::stack(heights).sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));  // [S,P]
    const at::Tensor all = at::stack(ends);                                         // [S,P,D]
    std::vector<at::Tensor> kept;
    for (int64_t i = 0; i < std::max(quarter, finalists_); ++i)
      kept.push_back(
          all.gather(0, order[i].view({1, -1, 1}).expand({1, -1, all.size(2)})).squeeze(0));
    return kept;
  }

  double widening_;
  int64_t rounds_, starts_, finalists_;
  double until_;
};

const Enrol<BaseRegistry> kEnrolLaplaceBase(
    "laplace[:W]",
    "a Gaussian at the mode with the curvature there, its standard deviations times W (rounds=N "
    "of Newton's method: 2 from an encoder, else 8; starts=N, all but one random: a rival mode "
    "gets a Gaussian of its own, whose chains add up; finalists=N: four starts go first, the "
    "others where these disagree; after each round the highest quarter goes on, until N are left; "
    "until=T: no further round where the square of Newton's step, in standard deviations, is "
    "below T)",
    "laplace", [](Spec& spec) {
      const double widening = spec.number("widening", 0.1, 10.0, 1.0);
      const int64_t rounds = spec.integer("rounds", 1, 1000, 0);
      const int64_t starts = spec.integer("starts", 1, 1000, 1);
      const int64_t finalists = spec.integer("finalists", 1, 1000, starts);
      return std::make_unique<Laplace>(widening, rounds, starts, finalists,
                                       spec.number("until", 0.0, 1e6, 0.0));
    });

}  // namespace
}  // namespace crais
