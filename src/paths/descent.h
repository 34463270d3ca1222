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

/// The constants of a path of steepest descent, found by a pilot: one row a step. C is P or 1
/// (shared).
struct DescentConstants {
  at::Tensor range;      // [2,C] float64: the tables' nodes lie between these values of kappa
  at::Tensor log_ratio;  // [L,C]: log R, R the mean of e^v over the particles before the step
  at::Tensor mean;       // [L,C]: m, the mean of g(e^v / R) over these particles
  at::Tensor step;       // [L,C]: dtheta > 0; 0 once a column has ended
};

/// Functions h(kappa) with slopes w in [0, 1]: cubic Hermite between nodes, linear outside them.
/// Each has a continuous derivative. Both h and kappa - h rise everywhere.
struct Tilts {
  at::Tensor kappa;  // [...,N] float64 on the CPU: the nodes, ascending
  at::Tensor h, w;   // [...,N]: values and slopes at the nodes
};

/// Steps of steepest descent, on the CPU. Each step is frozen once it is made.
///
/// With kappa = log gamma - log q0 and log q~ = log gamma - v, v depends on kappa alone:
///   dv/dtheta = m(theta) - g(e^v),  m = E_q[g(u)],  dD_f/dtheta = -Var_q[g(u)].
/// A step sets v <- v - log R, then solves y + dtheta (g(y) - m) = v for the new v = y. The
/// solution exists and rises with v because g rises. h = kappa - v is kept as a table.
class Descent {
 public:
  Descent(std::shared_ptr<const Divergence> divergence, const at::Tensor& range);

  /// h after the steps so far and its slope w, at kappa [P,K] float64 on the CPU, which may be
  /// infinite. P is C, or any number if C is 1. Cost: O(log N) a number.
  struct Point {
    at::Tensor h, w;  // [P,K]
  };
  Point at(const at::Tensor& kappa) const;
  /// The tables [C,N] at the start and after each step, minus h(0).
  const std::vector<Tilts>& knots() const { return knots_; }
  /// Makes one more step; each argument is [C]. A column whose `step` is 0 rests.
  void advance(const at::Tensor& log_ratio, const at::Tensor& mean, const at::Tensor& step);

 private:
  void add_knot();

  std::shared_ptr<const Divergence> divergence_;
  Tilts tilts_;
  std::vector<Tilts> knots_;
};

/// Options of a pilot along the path.
struct DescentOptions {
  double length = 0.5;      // of a step: standard deviation of its log-weights, nats
  int64_t max_knots = 512;  // more steps are an error
};

/// The path of steepest descent of D_f(pi || q), once a pilot has found its constants:
///   log gamma_beta = log q0 + h(kappa),  kappa = log gamma - log q0.
/// h is the table that Descent makes at each knot, minus h(0) so that the density lies between the
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
  /// A path that is not yet learned: `at` throws. `name` is the specification in PathRegistry.
  DescentPath(std::string name, std::shared_ptr<const Divergence> divergence,
              const DescentOptions& options);

  /// This path with the given constants. Equal constants give equal bytes.
  std::shared_ptr<const DescentPath> with(const DescentConstants& constants) const;
  /// This path with constants and the descent that made them.
  std::shared_ptr<const DescentPath> with(const DescentConstants& constants,
                                          const Descent& descent) const;
  /// The columns at `index` [Q]; a shared path keeps its column.
  std::shared_ptr<const DescentPath> select(const at::Tensor& index) const;

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override;
  bool needs_learning() const override { return !constants_.step.defined(); }
  bool is_replayable() const override { return false; }
  /// The clock is theta, linear in beta between knots.
  at::Tensor advance(const at::Tensor& beta, const at::Tensor& log_time) const override;

  const std::string& name() const { return name_; }
  const DescentOptions& options() const { return options_; }
  const DescentConstants& constants() const { return constants_; }

 private:
  std::shared_ptr<const DescentPath> learned(const DescentConstants& constants,
                                             const Tilts& tables) const;

  std::string name_;
  DescentOptions options_;
  DescentConstants constants_;
  at::Tensor num_knots_;  // [C] float64: L + 1, the index of the target's knot
  at::Tensor theta_;      // [C,L+1] float64: clock of each knot before the target's
  Tilts tables_;          // [L+2,C,N]
  double curvature_ = 1;  // f''(1)
};

}  // namespace crais
