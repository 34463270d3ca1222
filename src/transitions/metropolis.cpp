#include "transitions/metropolis.h"

#include <cmath>
#include <vector>

#include "core/plain.h"
#include "core/rng.h"
#include "simd/simd_kernel.h"

namespace crais {
namespace {

/// A weight of the path [P,K] as [P,K,1], or [P,1,1] where particles share it: elementwise passes
/// then run over K and D as one.
at::Tensor per_vector(const at::Tensor& weight, const Particles& particles) {
  const bool is_shared = weight.size(1) > 1 && weight.stride(1) == 0;
  return (is_shared ? weight.narrow(1, 0, 1) : weight).to(particles.e.scalar_type()).unsqueeze(-1);
}

/// step times a weight of the path, for each of the particles.
std::vector<float> factors(const at::Tensor& step, const at::Tensor& weight) {
  const int64_t problems = weight.size(0), particles = weight.size(1);
  const at::Tensor steps = step.expand({problems, particles, 1});
  std::vector<float> found(static_cast<size_t>(weight.numel()));
  const auto of_step = steps.accessor<float, 3>();
  const auto of_path = weight.accessor<double, 2>();
  size_t i = 0;
  for (int64_t p = 0; p < problems; ++p)
    for (int64_t k = 0; k < particles; ++k)
      found[i++] = of_step[p][k][0] * static_cast<float>(of_path[p][k]);
  return found;
}

/// By the loops of src/simd, if they can; else undefined.
at::Tensor kicked_at_once(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                          const Particles& particles) {
  const auto is_weight = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kDouble && x.dim() == 2;
  };
  if (!is_plain(p) || !is_plain(particles.e) || !is_plain(particles.grad_log_gamma) ||
      step.scalar_type() != at::kFloat || !step.is_cpu() || step.dim() != 3 ||
      !is_weight(point.d_log_gamma) || !is_weight(point.d_log_q0) || p.dim() != 3)
    return {};
  const std::vector<float> to_grad = factors(step, point.d_log_gamma),
                           to_e = factors(step, point.d_log_q0);
  at::Tensor found = at::empty_like(p);
  simd_kernel().kick(p.data_ptr<float>(), particles.grad_log_gamma.data_ptr<float>(),
                     particles.e.data_ptr<float>(), to_grad.data(), to_e.data(),
                     p.size(0) * p.size(1), p.size(2), found.data_ptr<float>());
  return found;
}

/// Takes proposals: `ratio` [P,K], clamped to at most 1 and 0 where it was not finite, becomes
/// their probability. Returns which are taken, and counts those that were not finite.
at::Tensor taken(const at::Tensor& log_ratio, const at::Tensor& u, at::Tensor& probability,
                 int64_t& num_nonfinite) {
  at::Tensor accepted = at::empty(log_ratio.sizes(), log_ratio.options().dtype(at::kBool));
  const double *ratio = log_ratio.data_ptr<double>(), *point = u.data_ptr<double>();
  double* of = probability.data_ptr<double>();
  bool* take = accepted.data_ptr<bool>();
  for (int64_t i = 0; i < log_ratio.numel(); ++i) {
    const bool finite = std::isfinite(ratio[i]);
    if (!finite) of[i] = 0;
    num_nonfinite += finite ? 0 : 1;
    take[i] = point[i] < of[i];
  }
  return accepted;
}

}  // namespace

at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles) {
  if (at::Tensor found = kicked_at_once(p, step, point, particles); found.defined()) return found;
  return at::addcmul(p, step * per_vector(point.d_log_gamma, particles), particles.grad_log_gamma)
      .addcmul_(step * per_vector(point.d_log_q0, particles), particles.e, -1);  // grad log q0 = -e
}

Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng) {
  if (is_plain(log_ratio, at::kDouble)) {
    const at::Tensor u = fill_uniform(at::empty_like(log_ratio), rng);
    at::Tensor accept_prob = log_ratio.clamp_max(0.0).exp_();
    int64_t num_nonfinite = 0;
    const at::Tensor accepted = taken(log_ratio, u, accept_prob, num_nonfinite);
    return {where(accepted, proposal, particles), accept_prob,
            at::full({}, num_nonfinite, at::kLong)};
  }
  const at::Tensor finite = log_ratio.isfinite();
  const at::Tensor accept_prob =
      at::where(finite, log_ratio.clamp_max(0.0).exp(), at::zeros_like(log_ratio));
  const at::Tensor accepted = fill_uniform(at::empty_like(accept_prob), rng) < accept_prob;
  return {where(accepted, proposal, particles), accept_prob, (~finite).sum()};
}

}  // namespace crais
