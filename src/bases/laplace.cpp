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

#include "bases/base.h"
#include "core/rng.h"
#include "util/interrupt.h"

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
    int64_t rounds = rounds_ > 0 ? rounds_ : target.amortised_base() ? 2 : 8;
    Cost cost;
    std::vector<at::Tensor> starts = {guess.loc()};
    // Single draws give modes of little mass a say; the best of many hits sharp ones.
    for (int64_t i = 1; i < starts_; ++i)
      starts.push_back(drawn(target, i % 2 == 0 ? 1 : kDrawsAStart, rng, cost));
    while (static_cast<int64_t>(starts.size()) > finalists_ && rounds > 1) {
      starts = highest(target, starts, cost);
      --rounds;
    }
    Mode best = climb(target, starts[0], rounds, cost);
    at::Tensor ambiguous = at::zeros_like(best.failed);
    for (size_t i = 1; i < starts.size(); ++i) {
      const Mode other = climb(target, starts[i], rounds, cost);
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

 private:
  /// One point of each problem on its way up.
  class Climb {
   public:
    Climb(const Target& target, at::Tensor z)
        : target_(target.shared()), z_(std::move(z)), now_(target.evaluate(z_.unsqueeze(1))) {
      length_ = at::ones({z_.size(0), 1}, z_.options());
    }

    /// Goes on with the problems at `index` [Q] alone.
    void narrow(const at::Tensor& index) {
      target_ = target_->select(index);
      z_ = z_.index_select(0, index);
      now_ = {now_.log_density.index_select(0, index), now_.grad.index_select(0, index)};
      length_ = length_.index_select(0, index);
    }

    const at::Tensor& z() const { return z_; }
    Factored curvature() const { return factor_precision(target_->curvature(z_).to(at::kDouble)); }
    at::Tensor log_density() const { return now_.log_density.squeeze(1).to(at::kDouble); }
    at::Tensor not_finite() const {
      return ~(now_.log_density.isfinite().squeeze(1) & now_.grad.isfinite().flatten(1).all(-1));
    }

    /// [P] bool: Newton's step is short. Its square, in standard deviations of the fit, is below
    /// `until`.
    at::Tensor has_arrived(const at::Tensor& covariance_root, double until) const {
      const at::Tensor gradient = now_.grad.to(at::kDouble).transpose(1, 2);
      return at::matmul(covariance_root.transpose(1, 2), gradient).square().sum({1, 2}) < until;
    }

    /// [P] bool: no step climbs any more, however short; rounding does not tell them apart.
    at::Tensor is_stuck() const { return length_.flatten() < 1e-3; }

    /// A round.
    void steps(const at::Tensor& covariance_root) {
      for (int64_t i = 0; i < steps_a_round(*target_); ++i) step(covariance_root);
    }

   private:
    void step(const at::Tensor& covariance_root) {
      stop_if_interrupted();
      const at::Tensor gradient = now_.grad.to(at::kDouble).transpose(1, 2);
      const at::Tensor newton =
          at::matmul(covariance_root, at::matmul(covariance_root.transpose(1, 2), gradient))
              .squeeze(2)
              .to(z_.scalar_type());
      const at::Tensor trial = z_ + length_ * newton;
      const Evaluation there = target_->evaluate(trial.unsqueeze(1));
      const at::Tensor climbs = (there.log_density > now_.log_density) &
                                there.grad.isfinite().flatten(1).all(-1, /*keepdim=*/true);
      z_ = at::where(climbs, trial, z_);
      now_ = {at::where(climbs, there.log_density, now_.log_density),
              at::where(climbs.unsqueeze(2), there.grad, now_.grad)};
      length_ = at::where(climbs, (1.5 * length_).clamp_max(1.0), 0.5 * length_);
    }

    std::shared_ptr<const Target> target_;  // the caller's, until it is narrowed
    at::Tensor z_;                          // [P,D]
    Evaluation now_;                        // [P,1], [P,1,D]
    at::Tensor length_;                     // [P,1], of a Newton step
  };

  /// Where a climb ended.
  struct Mode {
    at::Tensor z;         // [P,D]
    at::Tensor root;      // [P,D,D], of the covariance
    at::Tensor log_mass;  // [P] float64: log gamma + log det root, the integral but for a constant
    at::Tensor failed;    // [P] bool

    /// The problems at `place` [Q] are where `climb` is.
    void put(const at::Tensor& place, const Climb& climb, const at::Tensor& covariance_root,
             const at::Tensor& has_failed) {
      const at::Tensor narrow_root = covariance_root.to(root.options());
      const at::Tensor log_det = narrow_root.diagonal(0, 1, 2).to(at::kDouble).log().sum(-1);
      z.index_copy_(0, place, climb.z());
      root.index_copy_(0, place, narrow_root);
      log_mass.index_copy_(0, place, climb.log_density() + log_det);
      failed.index_copy_(0, place, has_failed | ~narrow_root.isfinite().flatten(1).all(-1));
    }
  };

  /// The most probable of `draws` draws from the prior, [P,D].
  static at::Tensor drawn(const Target& target, int64_t draws, at::Generator& rng, Cost& cost) {
    cost += Cost{target.num_problems() * draws, 0};
    const int64_t problems = target.num_problems(), dim = target.dim();
    const at::Tensor e = fill_normal(at::empty({problems, draws, dim}, target.options()), rng);
    const at::Tensor z = target.prior_base().to_z(e);
    const at::Tensor density =
        target.log_density(z).nan_to_num(-std::numeric_limits<double>::infinity());
    const at::Tensor best = density.argmax(1).view({problems, 1, 1}).expand({problems, 1, dim});
    return z.gather(1, best).squeeze(1);
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

  /// A problem that has arrived, or failed, stops there, and costs no more.
  Mode climb(const Target& target, const at::Tensor& start, int64_t rounds, Cost& cost) const {
    const int64_t problems = start.size(0);
    Climb climb(target, start);
    cost += Cost::with_gradient(problems);
    Mode mode{at::empty_like(start),
              at::empty({problems, start.size(1), start.size(1)}, start.options()),
              at::empty({problems}, start.options().dtype(at::kDouble)),
              at::empty({problems}, start.options().dtype(at::kBool))};
    at::Tensor place = at::arange(problems, start.options().dtype(at::kLong));  // [Q], who climbs
    at::Tensor failed = climb.not_finite();
    Factored factored;
    for (int64_t round = 0; round < rounds; ++round) {
      factored = climb.curvature();
      cost += Cost::with_gradient(place.size(0) * target.curvature_cost());
      failed = failed | factored.failed;
      const at::Tensor stops = failed | climb.has_arrived(factored.covariance_root, until_) |
                               (climb.is_stuck() & (until_ > 0));
      const at::Tensor going = at::nonzero(~stops).flatten();
      if (going.size(0) == 0) break;
      if (going.size(0) < place.size(0) && target.can_select()) {
        mode.put(place, climb, factored.covariance_root, failed);
        climb.narrow(going);
        place = place.index_select(0, going);
        failed = failed.index_select(0, going);
        factored.covariance_root = factored.covariance_root.index_select(0, going);
      }
      climb.steps(factored.covariance_root);
      cost += Cost::with_gradient(place.size(0) * steps_a_round(target));
    }
    mode.put(place, climb, factored.covariance_root, failed);
    return mode;
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
            at::where(take, b.log_mass, a.log_mass), a.failed & b.failed};
  }

  /// An eighth of a curvature's cost: more rarely save one.
  static int64_t steps_a_round(const Target& target) {
    return std::clamp<int64_t>(target.curvature_cost() / 8, 4, 32);
  }

  static constexpr int64_t kDrawsAStart = 32;

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
