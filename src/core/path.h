/// @file
/// The path between base and target, as a function of two scalars.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>

#include "core/divergence.h"
#include "core/registry.h"

namespace crais {

/// log gamma_beta and its derivatives with respect to log q0 and log gamma, each [P,K].
struct PathPoint {
  at::Tensor log_density;
  at::Tensor d_log_q0;
  at::Tensor d_log_gamma;
};

/// An annealing path. A path combines two cached numbers: it never sees a particle and never calls
/// a target.
///
///     auto path = crais::PathRegistry::instance().make("path", "power:0.5");
///     crais::PathPoint p = path->at(beta, log_q0, log_gamma);  // p.log_density [P,K]
class Path {
 public:
  /// A path along which `divergence` to the target falls. The path of steepest descent of
  /// `divergence` falls fastest.
  explicit Path(std::shared_ptr<const Divergence> divergence)
      : divergence_(std::move(divergence)) {}
  virtual ~Path() = default;

  /// The annealed density at `beta` [P,1] in [0,1], from log q0 and log gamma [P,K] float64. Exact
  /// at beta = 0 and 1, even if the density of the other end is -inf.
  virtual PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
                       const at::Tensor& log_gamma) const = 0;

  /// The annealed log density without its derivatives.
  virtual at::Tensor log_density(const at::Tensor& beta, const at::Tensor& log_q0,
                                 const at::Tensor& log_gamma) const {
    return at(beta, log_q0, log_gamma).log_density;
  }

  const Divergence& divergence() const { return *divergence_; }

  /// log of the rate at which the divergence falls along the path's own clock, [P] nats. The
  /// arguments are those of Divergence::log_variance, with kappa = log gamma - log gamma_beta. The
  /// default clock is -log(1 - beta).
  virtual at::Tensor log_rate(const at::Tensor& kappa, const at::Tensor& variance_weights,
                              const at::Tensor& ratio_weights) const {
    return divergence_->log_variance(kappa, variance_weights, ratio_weights);
  }
  /// The beta [P] at which the clock has advanced by exp(log_time) [P].
  virtual at::Tensor advance(const at::Tensor& beta, const at::Tensor& log_time) const {
    return beta + (1 - beta) * -at::expm1(-at::exp(log_time));
  }

  /// True if `at` needs numbers that only a pilot can find: see learn_path.
  virtual bool needs_learning() const { return false; }
  /// False if `at` waits for a device: see Recorder.
  virtual bool is_replayable() const { return true; }

 private:
  std::shared_ptr<const Divergence> divergence_;
};

using PathRegistry = Registry<Path>;

}  // namespace crais
