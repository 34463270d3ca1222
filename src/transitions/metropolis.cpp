#include "transitions/metropolis.h"

namespace crais {

Annealed annealed(const Path& path, const at::Tensor& beta, const Particles& particles) {
  const PathPoint point = path.at(beta, particles.log_q0, particles.log_gamma);
  const auto weight = [&](const at::Tensor& w) {
    return w.to(particles.e.scalar_type()).unsqueeze(-1);
  };
  at::Tensor grad = weight(point.d_log_gamma) * particles.grad_log_gamma;
  grad.addcmul_(weight(point.d_log_q0), particles.e, -1);  // grad log q0 = -e
  return {point.log_density, grad};
}

Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng) {
  const at::Tensor finite = log_ratio.isfinite();
  const at::Tensor accept_prob =
      at::where(finite, log_ratio.clamp_max(0.0).exp(), at::zeros_like(log_ratio));
  const at::Tensor accepted = at::empty_like(accept_prob).uniform_(0, 1, rng) < accept_prob;
  return {where(accepted, proposal, particles), accept_prob, (~finite).sum()};
}

}  // namespace crais
