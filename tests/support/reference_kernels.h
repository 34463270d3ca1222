// Plain kernels to compare with, and broken twins: what a test of a kernel must be able to see.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

#include "core/particles.h"
#include "core/transition.h"

namespace crais::testing {

inline at::Tensor annealed_grad(const Path& path, const at::Tensor& beta, const Particles& at) {
  const PathPoint point = path.at(beta.unsqueeze(1), at.log_q0, at.log_gamma);
  return point.d_log_gamma.unsqueeze(-1) * at.grad_log_gamma - point.d_log_q0.unsqueeze(-1) * at.e;
}

enum class Fault {
  kNone,
  kNoAccept,         // every proposal is taken
  kWrongKinetic,     // momentum drawn with mass 1, scored with another
  kMissingHalfKick,  // no kick after the last drift
  kFlippedLastKick,  // that kick with the wrong sign
  kWrongBeta,        // scored at half the temperature it moves at
  kKeptDensity,      // an accepted particle keeps the density of where it was
  kNoFlip,           // persistent momentum that is not turned round by a rejection
  kWrongRefresh,     // rho p + (1 - rho) xi
  kForceOfMomentum,  // a force that knows the momentum
};

class ReferenceHmc : public Transition {
 public:
  ReferenceHmc(Fault fault, int64_t num_leapfrog, double persistence = 0)
      : fault_(fault), num_leapfrog_(num_leapfrog), rho_(persistence) {}

  Moved step(const Problem& problem, const Path& path, const Particles& start,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    const at::Tensor eps = step_size.view({-1, 1, 1});
    const at::Tensor xi = at::empty_like(start.e).normal_(0, 1, rng);
    const double fresh = fault_ == Fault::kWrongRefresh ? 1 - rho_ : std::sqrt(1 - rho_ * rho_);
    const at::Tensor p0 =
        rho_ > 0 && start.momentum.defined() ? rho_ * start.momentum + fresh * xi : xi;
    Particles end = start;
    at::Tensor p = p0;
    for (int64_t i = 0; i < num_leapfrog_; ++i) {
      const auto force = [&] {
        const at::Tensor exact = annealed_grad(path, beta, end);
        return fault_ == Fault::kForceOfMomentum ? exact - 0.5 * p : exact;
      };
      p = p + 0.5 * eps * force();
      end = problem.evaluate(end.e + eps * p);
      const bool last = i + 1 == num_leapfrog_;
      if (last && fault_ == Fault::kMissingHalfKick) continue;
      const double kick = last && fault_ == Fault::kFlippedLastKick ? -0.5 : 0.5;
      p = p + kick * eps * force();
    }
    const at::Tensor scored_at = fault_ == Fault::kWrongBeta ? 0.5 * beta : beta;
    const at::Tensor ratio = annealed_log_density(path, scored_at, end) - kinetic(p) -
                             annealed_log_density(path, scored_at, start) + kinetic(p0);
    const at::Tensor accept_prob = ratio.clamp_max(0).exp();
    at::Tensor accepted = at::empty_like(accept_prob).uniform_(0, 1, rng) < accept_prob;
    if (fault_ == Fault::kNoAccept) accepted = at::ones_like(accepted);
    Particles next = where(accepted, end, start);
    if (fault_ == Fault::kKeptDensity) next.log_gamma = start.log_gamma;
    if (rho_ > 0)
      next.momentum = at::where(accepted.unsqueeze(-1), p, fault_ == Fault::kNoFlip ? p0 : -p0);
    return {next, accept_prob, at::zeros({}, at::kLong)};
  }

  int64_t evaluations_per_step() const override { return num_leapfrog_; }
  double target_acceptance() const override { return 0.6; }

 private:
  at::Tensor kinetic(const at::Tensor& p) const {
    return (fault_ == Fault::kWrongKinetic ? 1.0 : 0.5) * p.square().sum(-1);
  }

  Fault fault_;
  int64_t num_leapfrog_;
  double rho_;
};

enum class LangevinFault {
  kNone,
  kNoAccept,       // every proposal is taken
  kOneWay,         // the proposal's asymmetry is forgotten
  kWrongScale,     // drawn with noise of one scale, scored with another
  kStaleGradient,  // the way back drifts by the gradient of where it started
  kWrongBeta,      // scored at half the temperature it moves at
  kAlwaysUp,       // a random walk with a drift that is not scored
};

/// With `drift` the Langevin proposal, scored by its densities there and back; without, a random
/// walk.
class ReferenceLangevin : public Transition {
 public:
  ReferenceLangevin(LangevinFault fault, bool drift) : fault_(fault), drift_(drift) {}

  Moved step(const Problem& problem, const Path& path, const Particles& start,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    const at::Tensor eps = step_size.view({-1, 1, 1});
    const at::Tensor noise = at::empty_like(start.e).normal_(0, 1, rng);
    at::Tensor to = forward_mean(path, beta, eps, start) + eps * noise;
    if (fault_ == LangevinFault::kAlwaysUp) to = to + 0.2 * eps;
    const Particles end = problem.evaluate(to);
    const at::Tensor scored_at = fault_ == LangevinFault::kWrongBeta ? 0.5 * beta : beta;
    at::Tensor ratio =
        annealed_log_density(path, scored_at, end) - annealed_log_density(path, scored_at, start);
    if (drift_ && fault_ != LangevinFault::kOneWay) {
      const at::Tensor back = fault_ == LangevinFault::kStaleGradient
                                  ? end.e + (forward_mean(path, beta, eps, start) - start.e)
                                  : forward_mean(path, beta, eps, end);
      ratio = ratio + log_proposal(start.e, back, eps) -
              log_proposal(end.e, forward_mean(path, beta, eps, start), eps);
    }
    const at::Tensor accept_prob = ratio.clamp_max(0).exp();
    at::Tensor accepted = at::empty_like(accept_prob).uniform_(0, 1, rng) < accept_prob;
    if (fault_ == LangevinFault::kNoAccept) accepted = at::ones_like(accepted);
    return {where(accepted, end, start), accept_prob, at::zeros({}, at::kLong)};
  }

  int64_t evaluations_per_step() const override { return 1; }
  double target_acceptance() const override { return 0.5; }

 private:
  at::Tensor forward_mean(const Path& path, const at::Tensor& beta, const at::Tensor& eps,
                          const Particles& at) const {
    if (!drift_) return at.e;
    return at.e + 0.5 * eps.square() * annealed_grad(path, beta, at);
  }
  at::Tensor log_proposal(const at::Tensor& to, const at::Tensor& mean,
                          const at::Tensor& eps) const {
    const double scale = fault_ == LangevinFault::kWrongScale ? 2.0 : 1.0;
    return -0.5 * ((to - mean) / (scale * eps)).square().sum(-1);
  }

  LangevinFault fault_;
  bool drift_;
};

}  // namespace crais::testing
