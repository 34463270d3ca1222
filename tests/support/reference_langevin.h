// A plain Langevin step and random walk to compare with, and their broken twins.
#pragma once

#include <ATen/ATen.h>

#include "core/transition.h"

namespace crais::testing {

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
    at::Tensor ratio = log_density(path, scored_at, end) - log_density(path, scored_at, start);
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
  static at::Tensor log_density(const Path& path, const at::Tensor& beta, const Particles& at) {
    return path.at(beta.unsqueeze(1), at.log_q0, at.log_gamma).log_density;
  }
  at::Tensor forward_mean(const Path& path, const at::Tensor& beta, const at::Tensor& eps,
                          const Particles& at) const {
    if (!drift_) return at.e;
    const PathPoint point = path.at(beta.unsqueeze(1), at.log_q0, at.log_gamma);
    const at::Tensor grad =
        point.d_log_gamma.unsqueeze(-1) * at.grad_log_gamma - point.d_log_q0.unsqueeze(-1) * at.e;
    return at.e + 0.5 * eps.square() * grad;
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
