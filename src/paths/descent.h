/// @file
/// The annealing path of any f-divergence, as steepest descent finds it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/path.h"
#include "paths/tilt.h"

namespace crais {

/// What a pilot finds out about a path of steepest descent: one row a step. C is P or 1 (shared).
struct DescentConstants {
  at::Tensor range;      // [2,C] float64: the nodes of tables lie between these kappa
  at::Tensor log_ratio;  // [L,C]: log R, of the mean e^v over the particles before the step
  at::Tensor mean;       // [L,C]: m, their mean g(e^v / R)
  at::Tensor step;       // [L,C]: dtheta > 0; 0 where a column has ended before
};

/// Steps of steepest descent, each frozen once it is made.
///
/// With kappa = log gamma - log q0 and log q~ = log gamma - v, v depends on kappa alone:
///   dv/dtheta = m(theta) - g(e^v),  m = E_q[g(u)],  dD_f/dtheta = -Var_q[g(u)].
/// A step takes v <- v - log R, then solves y + dtheta (g(y) - m) = v for the new v = y, which
/// exists and rises with v since g does. h = kappa - v is kept as a table.
class Descent {
 public:
  Descent(std::shared_ptr<const Divergence> divergence, const at::Tensor& range);

  /// h and its slope w after the steps so far, at kappa [C,M].
  TiltPoint at(const at::Tensor& kappa) const { return evaluate(tilts_, kappa); }
  const Tilts& tilts() const { return tilts_; }
  /// The tables at the start and after each step, less h(0).
  const std::vector<Tilts>& knots() const { return knots_; }
  /// One more step, each number [C]; a column whose `step` is 0 rests.
  void advance(const at::Tensor& log_ratio, const at::Tensor& mean, const at::Tensor& step);

 private:
  void add_knot();

  std::shared_ptr<const Divergence> divergence_;
  Tilts tilts_;
  std::vector<Tilts> knots_;
};

/// How a pilot steps along the way.
struct DescentOptions {
  double length = 0.5;      // of a step: the standard deviation of log-weights that it makes, nats
  int64_t max_knots = 512;  // more steps than this are an error
};

/// The path of steepest descent of D_f(pi || q), once a pilot has found its constants:
///   log gamma_beta = log q0 + h(kappa),  kappa = log gamma - log q0,
/// with h of the table that Descent makes at each knot (less h(0), so that the density lies between
/// those of the ends), linear in beta between knots. Knots lie equally far apart in beta: 0 is the
/// base, L descent's last step, and L + 1 the target. A fixed positive density, so E[w] = Z however
/// noisy the pilot was.
///
///     auto path = crais::PathRegistry::instance().make("path", "f:jensen-shannon");
///     crais::PilotRun pilot = crais::run_pilot(problem, *path, *rule, *hmc, {}, rng);
///     crais::AnnealResult run = crais::anneal(problem, *path, pilot.plan, *hmc, 64, rng);
///
/// Cost of `at`: O(log N) a particle, no target evaluations.
class DescentPath : public Path {
 public:
  /// Not yet learned: `at` throws. `name` is the specification in PathRegistry.
  DescentPath(std::string name, std::shared_ptr<const Divergence> divergence,
              const DescentOptions& options);

  /// The same path with constants, on the CPU. Deterministic: equal constants make equal bytes.
  std::shared_ptr<const DescentPath> with(const DescentConstants& constants) const;
  /// The same, from the descent that took steps of these constants.
  std::shared_ptr<const DescentPath> with(const DescentConstants& constants,
                                          const Descent& descent) const;
  /// The columns at `index` [Q]; all of a shared one.
  std::shared_ptr<const DescentPath> select(const at::Tensor& index) const;
  std::shared_ptr<const DescentPath> to(c10::Device device) const;

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override;
  bool needs_learning() const override { return !constants_.step.defined(); }
  /// The clock is theta, linear in beta between knots.
  at::Tensor advance(const at::Tensor& beta, const at::Tensor& log_time) const override;

  const std::string& name() const { return name_; }
  const DescentOptions& options() const { return options_; }
  const DescentConstants& constants() const { return constants_; }

 private:
  /// `at` for plain tensors: particle by particle, where small operations would take twenty times
  /// as long.
  PathPoint at_each(const at::Tensor& beta, const at::Tensor& log_q0,
                    const at::Tensor& log_gamma) const;
  /// Rows of the tables: `knot` [Q] of the columns of Q problems.
  Tilts rows(const at::Tensor& knot) const;

  std::string name_;
  DescentOptions options_;
  DescentConstants constants_;
  at::Tensor num_knots_;  // [C] float64: L + 1, the target's
  at::Tensor theta_;      // [C,L+1] float64: of each knot but the target's; rests repeat
  Tilts tables_;          // [(L+2) C, N], knot by knot
  double curvature_ = 1;  // f''(1)
};

}  // namespace crais
