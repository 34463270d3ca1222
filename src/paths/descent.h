/// @file
/// The annealing path of any f-divergence, found by steepest descent.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/path.h"

namespace crais {

/// The path of steepest descent of D_f(pi || q), which a pilot goes down step by step.
///
///     auto path = crais::PathRegistry::instance().make("path", "f:jensen-shannon");
///     crais::PilotRun pilot = crais::run_pilot(problem, *path, *rule, *hmc, {}, rng);
///     crais::AnnealResult run = crais::anneal(problem, *path, pilot.plan, *hmc, 64, rng);
///
/// With kappa = log gamma - log q0 and log q~ = log gamma - v, v depends on kappa alone:
///   dv/dtheta = m(theta) - g(e^v),  m = E_q[g(u)],  dD_f/dtheta = -Var_q[g(u)].
/// A step sets v <- v - log R, then solves y + dtheta (g(y) - m) = v for the new v = y. The
/// solution exists and rises with v because g rises. Each knot is a table of h = kappa - v.
///
/// A finished path has log gamma_beta = log q0 + h(kappa), h(0) = 0 so that the density lies
/// between the densities of the ends. Between knots, h is linear in beta. Knots are evenly spaced
/// in beta: knot 0 is the base, knot L the last step of the descent, knot L + 1 the target. The
/// density is fixed and positive, so E[w] = Z even after a noisy pilot.
///
/// C is P, or 1 where problems share their steps. Cost of `at`: O(log N) a particle, no target
/// evaluations. The tables are on the CPU, whatever the device of the particles.
class DescentPath : public Path {
 public:
  /// A path that is not yet learned: `at` throws.
  DescentPath(std::shared_ptr<const Divergence> divergence, std::string spec, int64_t most_knots)
      : Path(std::move(divergence)), name(std::move(spec)), max_knots(most_knots) {}

  /// A descent that stands at the base, with room for the values of kappa in `range` [2,C].
  std::shared_ptr<DescentPath> start(const at::Tensor& range) const;
  /// Makes one more step [3,C] of `constants`. Equal steps give equal bytes.
  void descend(const at::Tensor& step);
  /// Ends a descent of at least one step: the path is learned.
  void finish();
  /// The learned path with these `constants`; null if they are not those of a descent.
  std::shared_ptr<const DescentPath> replay(const at::Tensor& constants) const;
  /// The columns at `index` [Q] of a learned path; a shared descent keeps its column.
  std::shared_ptr<const DescentPath> select(const at::Tensor& index) const;

  /// The density at its last knot, whatever beta, as long as the descent goes on.
  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override;
  bool needs_learning() const override { return !learned_.defined(); }
  bool is_replayable() const override { return false; }
  /// The clock is theta, linear in beta between knots.
  at::Tensor advance(const at::Tensor& beta, const at::Tensor& log_time) const override;

  std::string name;   // the specification in PathRegistry
  int64_t max_knots;  // a pilot that takes more steps fails
  /// [2+3L,C] float64: two values of kappa, between which tables have their nodes. Then, for each
  /// step, log R (R the mean of e^v over the particles before it), m (the mean of g(e^v / R) over
  /// them), and dtheta > 0, or 0 once a column has ended.
  at::Tensor constants;

 private:
  // A table [3,C,N] has the nodes kappa, ascending, and the values and slopes of h at them.
  std::vector<at::Tensor> knots_;  // of a descent: the tables at the start and after each step
  at::Tensor learned_;             // [3,C,L+2,N]: tables of a learned path, with the target's
  at::Tensor num_knots_;           // [C] float64: L + 1, the index of the target's knot
  at::Tensor theta_;               // [C,L+1] float64: clock of each knot before the target's
};

}  // namespace crais
