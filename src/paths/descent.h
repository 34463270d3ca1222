/// @file
/// The annealing path of any f-divergence, found by steepest descent.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/path.h"

namespace crais {

/// Functions h(kappa) with slopes w in [0, 1]: cubic Hermite between nodes, linear outside them.
/// Each has a continuous derivative. Both h and kappa - h rise everywhere.
struct Tilts {
  at::Tensor kappa;  // [...,N] float64 on the CPU: the nodes, ascending
  at::Tensor h, w;   // [...,N]: values and slopes at the nodes
};

/// Steps of steepest descent, on the CPU. Each step is frozen once it is made. C is P, or 1 where
/// problems share them.
///
/// With kappa = log gamma - log q0 and log q~ = log gamma - v, v depends on kappa alone:
///   dv/dtheta = m(theta) - g(e^v),  m = E_q[g(u)],  dD_f/dtheta = -Var_q[g(u)].
/// A step sets v <- v - log R, then solves y + dtheta (g(y) - m) = v for the new v = y. The
/// solution exists and rises with v because g rises. h = kappa - v is kept as a table.
class Descent {
 public:
  /// The tables' nodes lie in `range` [2,C] float64, values of kappa.
  Descent(std::shared_ptr<const Divergence> divergence, const at::Tensor& range);

  /// Makes one more step; each argument is [C]. Equal steps give equal bytes.
  /// @param log_ratio  log R, R the mean of e^v over the particles before the step.
  /// @param mean       m, the mean of g(e^v / R) over these particles.
  /// @param step       dtheta > 0; 0 once a column has ended.
  void advance(const at::Tensor& log_ratio, const at::Tensor& mean, const at::Tensor& step);

  /// h after the steps so far and its slope w, at kappa [P,K] float64 on the CPU, which may be
  /// infinite. P is C, or any number if C is 1. Cost: O(log N) a number.
  Tilts at(const at::Tensor& kappa) const;
  /// The columns at `index` [Q]; a shared descent keeps its column.
  Descent select(const at::Tensor& index) const;

  at::Tensor range;                                // [2,C]
  std::vector<at::Tensor> log_ratio, mean, steps;  // of each step, [C]
  std::vector<Tilts> knots;                        // [C,N], at the start and after each step

 private:
  std::shared_ptr<const Divergence> divergence_;
};

struct DescentOptions {
  std::string name;         // the specification in PathRegistry
  double length = 0.5;      // of a pilot's step: standard deviation of its log-weights, nats
  int64_t max_knots = 512;  // more steps are an error
};

/// The path of steepest descent of D_f(pi || q), once a pilot has found its steps:
///   log gamma_beta = log q0 + h(kappa),  kappa = log gamma - log q0.
/// h is the table of each knot of a Descent, minus h(0) so that the density lies between the
/// densities of the ends. Between knots, h is linear in beta. Knots are evenly spaced in beta: knot
/// 0 is the base, knot L the last step of the descent, knot L + 1 the target. The density is fixed
/// and positive, so E[w] = Z even after a noisy pilot.
///
///     auto path = crais::PathRegistry::instance().make("path", "f:jensen-shannon");
///     crais::PilotRun pilot = crais::run_pilot(problem, *path, *rule, *hmc, {}, rng);
///     crais::AnnealResult run = crais::anneal(problem, *path, pilot.plan, *hmc, 64, rng);
///
/// Cost of `at`: O(log N) a particle, no target evaluations. The tables are on the CPU, whatever
/// the device of the particles.
class DescentPath : public Path {
 public:
  /// A path that is not yet learned: `at` throws.
  DescentPath(std::shared_ptr<const Divergence> divergence, DescentOptions options);

  /// The path that follows a descent of at least one step.
  std::shared_ptr<const DescentPath> along(const Descent& descent) const;

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override;
  bool needs_learning() const override { return !descent_; }
  bool is_replayable() const override { return false; }
  /// The clock is theta, linear in beta between knots.
  at::Tensor advance(const at::Tensor& beta, const at::Tensor& log_time) const override;

  const DescentOptions& options() const { return options_; }
  const Descent& descent() const { return *descent_; }

 private:
  DescentOptions options_;
  std::shared_ptr<const Descent> descent_;  // null: not yet learned
  at::Tensor num_knots_;                    // [C] float64: L + 1, the index of the target's knot
  at::Tensor theta_;  // [C,L+1] float64: clock of each knot before the target's
  Tilts tables_;      // [L+2,C,N]
};

}  // namespace crais
