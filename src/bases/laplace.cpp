// The Laplace approximation: a Gaussian at the mode, with the curvature there as its precision.
//                                                      [Tierney & Kadane 1986; MacKay 2003, ch. 27]
//
// Damped Newton steps d = H^-1 g on log gamma. A curvature costs as much as tens of evaluations, so
// each serves a round of several steps (Shamanskii's method), the more the dearer it is, each
// followed by one evaluation. A step that does not climb is halved, and taken back. The last
// curvature is the base's precision.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "bases/climb.h"
#include "core/rng.h"

namespace crais {
namespace {

class Laplace : public BaseRule {
 public:
  Laplace(double widening, int64_t rounds, int64_t starts, int64_t finalists, double until)
      : widening_(widening),
        rounds_(rounds),
        starts_(starts),
        finalists_(finalists),
        until_(until) {}

  Base build(const Target& target, at::Generator& rng) const override {
    const AffineMap guess = first_guess(target);
    int64_t rounds = rounds_of(target);
    Cost cost;
    std::vector<at::Tensor> starts = {guess.loc()};
    // Single draws give modes of little mass a say; the best of many hits sharp ones.
    for (int64_t i = 1; i < starts_; ++i)
      starts.push_back(most_probable_draw(target, i % 2 == 0 ? 1 : kDrawsAStart, rng, cost));
    while (static_cast<int64_t>(starts.size()) > finalists_ && rounds > 1) {
      starts = highest(target, starts, cost);
      --rounds;
    }
    Mode best = climb(target, starts[0], rounds, until_, cost);
    at::Tensor ambiguous = at::zeros_like(best.failed);
    for (size_t i = 1; i < starts.size(); ++i) {
      const Mode other = climb(target, starts[i], rounds, until_, cost);
      ambiguous = ambiguous | rivals(best, other);
      best = better(best, other);
    }
    const at::Tensor failed = best.failed;
    const AffineMap fitted(
        at::where(failed.unsqueeze(1), guess.loc(), best.z),
        at::where(failed.view({-1, 1, 1}), guess.matrix(), widening_ * best.root));
    Base base(fitted, failed, cost);
    base.ambiguous = ambiguous & ~failed;
    return base;
  }

  std::optional<double> expected_cost(const Target& target) const override {
    const int64_t steps = steps_a_round(target), curvature = target.curvature_cost();
    int64_t cost = 0, rounds = rounds_of(target), climbs = starts_;
    for (int64_t i = 1; i < starts_; ++i) cost += i % 2 == 0 ? 1 : kDrawsAStart;
    for (; climbs > finalists_ && rounds > 1; --rounds) {
      cost += climbs * (1 + curvature + steps);
      climbs = std::max((climbs + 3) / 4, finalists_);
    }
    if (until_ > 0) rounds = std::min(rounds, kUsualRounds);
    return static_cast<double>(cost + climbs * (1 + rounds * (curvature + steps)));
  }

 private:
  int64_t rounds_of(const Target& target) const {
    return rounds_ > 0 ? rounds_ : target.amortised_base() ? 2 : 8;
  }

  /// The quarter of the starts, [P,D] each, that is highest for each problem after a round, the
  /// highest first; no fewer than finalists_.
  std::vector<at::Tensor> highest(const Target& target, const std::vector<at::Tensor>& starts,
                                  Cost& cost) const {
    std::vector<at::Tensor> ends, heights;
    for (const at::Tensor& start : starts) {
      Climb climb(target, start);
      climb.steps(climb.curvature().covariance_root);
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

  /// Modes far apart in units of either's width, of comparable mass.
  static at::Tensor rivals(const Mode& a, const Mode& b) {
    constexpr double kComparable = 3.0;  // nats: the lesser holds a twentieth
    const auto distance = [&](const Mode& from) {
      const at::Tensor step = (b.z - a.z).to(at::kDouble).unsqueeze(2);
      return at::linalg_solve_triangular(from.root.to(at::kDouble), step, /*upper=*/false)
          .square()
          .sum({1, 2});
    };
    const double far = 9.0 + static_cast<double>(a.z.size(1));  // squared
    return ((a.log_mass - b.log_mass).abs() < kComparable) & (distance(a) > far) &
           (distance(b) > far) & ~a.failed & ~b.failed;
  }

  static Mode better(const Mode& a, const Mode& b) {
    const at::Tensor take = ~b.failed & (a.failed | (b.log_mass > a.log_mass));
    return {at::where(take.unsqueeze(1), b.z, a.z),
            at::where(take.view({-1, 1, 1}), b.root, a.root),
            at::where(take.view({-1, 1, 1}), b.before, a.before),
            at::where(take, b.log_mass, a.log_mass), a.failed & b.failed};
  }

  double widening_;
  int64_t rounds_, starts_, finalists_;
  double until_;
};

const Enrol<BaseRegistry> kEnrolLaplaceBase(
    "laplace",
    {"laplace[:W]",
     "a Gaussian at the mode with the curvature there, its standard deviations times W (rounds=N "
     "of Newton's method: 2 from an encoder, else 8; starts=N, all but one random: flags rival "
     "modes; finalists=N: after each round the highest quarter goes on, until N are left; until=T: "
     "no further round where the square of Newton's step, in standard deviations, is below T)",
     "laplace", [](Spec& spec) {
       const double widening = spec.number("widening", 0.1, 10.0, 1.0);
       const int64_t rounds = spec.integer("rounds", 1, 1000, 0);
       const int64_t starts = spec.integer("starts", 1, 1000, 1);
       const int64_t finalists = spec.integer("finalists", 1, 1000, starts);
       return std::make_unique<Laplace>(widening, rounds, starts, finalists,
                                        spec.number("until", 0.0, 1e6, 0.0));
     }});

}  // namespace
}  // namespace crais
