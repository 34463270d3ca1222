// The better of two fits for each problem: the Laplace approximation, or its first guess (the
// encoder's q(z | x) or the prior).
//
// The better fit has the higher evidence lower bound, E_q[log gamma - log q], estimated from a few
// draws. Laplace is usually far better. The bound detects failures of Newton's method, and modes
// that are away from the mass. Newton's method starts from several points: decoders with kinks have
// many modes.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bases/base.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr int64_t kDraws = 16;  // for each fit; relevant differences of bounds are whole nats

/// The bound from new draws of the map, [P] nats.
at::Tensor drawn_bound(const Target& target, const AffineMap& map, at::Generator& rng) {
  const at::Tensor e =
      fill_normal(at::empty({target.num_problems(), kDraws, target.dim()}, target.options()), rng);
  return evidence_bound(target.log_density(map.to_z(e)), e, map);
}

/// The number of starts that a fit of a few thousand evaluations allows; fewer with an encoder's
/// guess.
int64_t affordable_starts(const Target& target) {
  const int64_t most = target.amortised_base() ? 300 : 600;
  return std::clamp<int64_t>(most / target.curvature_cost(), 4, 48);
}

class Best : public BaseRule {
 public:
  Best(double widening, int64_t rounds, int64_t starts)
      : widening_(widening), rounds_(rounds), starts_(starts) {}

  Base build(const Target& target, at::Generator& rng) const override {
    const AffineMap guess = first_guess(target);
    const Base laplace = fit_for(target)->build(target, rng);
    const at::Tensor by_mode = drawn_bound(target, laplace.main_parts(), rng);
    const at::Tensor by_guess = drawn_bound(target, guess, rng);
    const at::Tensor take = ~laplace.fell_back & ((by_mode > by_guess) | ~by_guess.isfinite());
    Base base = better(take, laplace, guess);
    base.map = base.map.widened(widening_);
    base.cost += Cost{target.num_problems() * 2 * kDraws, 0};
    return base;
  }

  std::optional<double> expected_cost(const Target& target) const override {
    return *fit_for(target)->expected_cost(target) + 2 * kDraws;
  }

 private:
  /// All parts of `fit` for problems with `take` [P]; for the rest, `guess` replaces the first
  /// part.
  static Base better(const at::Tensor& take, const Base& fit, const AffineMap& guess) {
    AffineMap map = fit.map, other = guess;
    at::Tensor is_fit = take;
    std::optional<Partition> partition;
    if (fit.partition) {
      const at::Tensor& owner = fit.partition->problem;
      const at::Tensor is_main =
          at::zeros_like(owner, at::kBool).index_fill(0, fit.main_rows(), true);
      const at::Tensor rows = at::nonzero(is_main | take.index_select(0, owner)).flatten();
      const at::Tensor problem = owner.index_select(0, rows);
      map = map.select(rows);
      other = guess.select(problem);
      is_fit = take.index_select(0, problem);
      partition = Partition::by_mass(problem, fit.partition->log_share.index_select(0, rows),
                                     fit.num_problems());
    }
    Base base(chosen(is_fit, map.loc(), map.matrix(), other), fit.fell_back, fit.cost);
    base.ambiguous = fit.ambiguous & take;
    base.partition = std::move(partition);
    return base;
  }

  std::unique_ptr<BaseRule> fit_for(const Target& target) const {
    const int64_t starts = starts_ > 0 ? starts_ : affordable_starts(target);
    return BaseRegistry::instance().make("base", "laplace:1,rounds=" + std::to_string(rounds_) +
                                                     ",starts=" + std::to_string(starts) +
                                                     ",finalists=2,until=0.1");
  }

  double widening_;
  int64_t rounds_, starts_;
};

const Enrol<BaseRegistry> kEnrolBestBase(
    "best[:W]",
    "for each problem laplace or its first guess (the encoder, else the prior), whichever "
    "has the higher evidence lower bound; standard deviations times W (rounds=20 of "
    "Newton's method, starts=N: 4 to 48, depending on their cost)",
    "best", [](Spec& spec) {
      const double widening = spec.number("widening", 0.1, 10.0, 1.0);
      const int64_t rounds = spec.integer("rounds", 1, 1000, 20);
      return std::make_unique<Best>(widening, rounds, spec.integer("starts", 1, 1000, 0));
    });

}  // namespace
}  // namespace crais
