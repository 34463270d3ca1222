#include "transitions/metropolis.h"

namespace crais {
namespace {

/// A weight of the path [P,K] as [P,K,1], or [P,1,1] where particles share it: elementwise passes
/// then run over K and D as one.
at::Tensor per_vector(const at::Tensor& weight, const Particles& particles) {
  const bool is_shared = weight.size(1) > 1 && weight.stride(1) == 0;
  return (is_shared ? weight.narrow(1, 0, 1) : weight).to(particles.e.scalar_type()).unsqueeze(-1);
}

}  // namespace

at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles) {
  return at::addcmul(p, step * per_vector(point.d_log_gamma, particles), particles.grad_log_gamma)
      .addcmul_(step * per_vector(point.d_log_q0, particles), particles.e, -1);  // grad log q0 = -e
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
