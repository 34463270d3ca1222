#include "transitions/metropolis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/plain.h"
#include "core/rng.h"
#include "simd/simd_kernel.h"

namespace crais {
namespace {

/// A weight [P,K] of the path as [P,K,1], or as [P,1,1] if all particles share it: elementwise
/// passes then run over K and D as one dimension.
at::Tensor per_vector(const at::Tensor& weight, const Particles& particles) {
  const bool is_shared = weight.size(1) > 1 && weight.stride(1) == 0;
  return (is_shared ? weight.narrow(1, 0, 1) : weight).to(particles.e.scalar_type()).unsqueeze(-1);
}

/// Factors of the loops over particles, one number for each particle.
struct Factors {
  std::vector<float> step, to_grad, to_e;  // step times the path's weights
};

/// The factors for the loops of src/simd; nothing if these loops cannot take the particles.
std::optional<Factors> factors(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                               const Particles& particles) {
  const auto is_weight = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kDouble && x.dim() == 2;
  };
  if (!is_plain(p) || !is_plain(particles.e) || !is_plain(particles.grad_log_gamma) ||
      step.scalar_type() != at::kFloat || !step.is_cpu() || step.dim() != 3 ||
      !is_weight(point.d_log_gamma) || !is_weight(point.d_log_q0) || p.dim() != 3)
    return {};
  const at::Tensor each = step.expand({p.size(0), p.size(1), 1});
  const auto steps = each.accessor<float, 3>();
  const auto gamma = point.d_log_gamma.accessor<double, 2>();
  const auto q0 = point.d_log_q0.accessor<double, 2>();
  Factors result;
  result.step.resize(static_cast<size_t>(each.numel()));
  result.to_grad = result.to_e = result.step;
  size_t i = 0;
  for (int64_t n = 0; n < p.size(0); ++n)
    for (int64_t k = 0; k < p.size(1); ++k, ++i) {
      result.step[i] = steps[n][k][0];
      result.to_grad[i] = result.step[i] * static_cast<float>(gamma[n][k]);
      result.to_e[i] = result.step[i] * static_cast<float>(q0[n][k]);
    }
  return result;
}

/// The accepted proposals and their acceptance probabilities.
struct Taken {
  at::Tensor accepted, probability;  // [P,K] bool, float64
  int64_t num_nonfinite = 0;

  Taken(const at::Tensor& log_ratio, const at::Tensor& u, const at::Tensor& density)
      : accepted(at::empty(log_ratio.sizes(), log_ratio.options().dtype(at::kBool))),
        probability(at::empty_like(log_ratio)) {
    const double *ratio = log_ratio.data_ptr<double>(), *point = u.data_ptr<double>(),
                 *log_gamma = density.data_ptr<double>();
    auto* const of = probability.data_ptr<double>();
    bool* const take = accepted.data_ptr<bool>();
    for (int64_t i = 0; i < log_ratio.numel(); ++i) {
      const bool finite = std::isfinite(ratio[i]);
      of[i] = finite ? std::exp(std::min(ratio[i], 0.0)) : 0;
      num_nonfinite += finite || log_gamma[i] == -std::numeric_limits<double>::infinity() ? 0 : 1;
      take[i] = point[i] < of[i];
    }
  }
};

}  // namespace

at::Tensor kicked(const at::Tensor& p, const at::Tensor& step, const PathPoint& point,
                  const Particles& particles) {
  if (const auto by = factors(p, step, point, particles)) {
    at::Tensor result = at::empty_like(p);
    simd_kernel().kick(p.data_ptr<float>(), particles.grad_log_gamma.data_ptr<float>(),
                       particles.e.data_ptr<float>(), by->to_grad.data(), by->to_e.data(),
                       p.size(0) * p.size(1), p.size(2), result.data_ptr<float>());
    return result;
  }
  return at::addcmul(p, step * per_vector(point.d_log_gamma, particles), particles.grad_log_gamma)
      .addcmul_(step * per_vector(point.d_log_q0, particles), particles.e, -1);  // grad log q0 = -e
}

Drifted kicked_and_drifted(const at::Tensor& p, const at::Tensor& half, const PathPoint& point,
                           const Particles& particles) {
  if (const auto by = factors(p, half, point, particles)) {
    Drifted result{at::empty_like(p), at::empty_like(p)};
    simd_kernel().kick_and_drift(p.data_ptr<float>(), particles.grad_log_gamma.data_ptr<float>(),
                                 particles.e.data_ptr<float>(), by->to_grad.data(), by->to_e.data(),
                                 by->step.data(), p.size(0) * p.size(1), p.size(2),
                                 result.p.data_ptr<float>(), result.e.data_ptr<float>());
    return result;
  }
  const at::Tensor faster = kicked(p, half, point, particles);
  return {faster, at::addcmul(particles.e, 2 * half, faster)};
}

Moved metropolis(const Particles& particles, const Particles& proposal, const at::Tensor& log_ratio,
                 at::Generator& rng) {
  if (is_plain(log_ratio, at::kDouble) && is_plain(proposal.log_gamma, at::kDouble)) {
    const Taken acceptance(log_ratio, fill_uniform(at::empty_like(log_ratio), rng),
                           proposal.log_gamma);
    return {where(acceptance.accepted, proposal, particles), acceptance.probability,
            at::full({}, acceptance.num_nonfinite, at::kLong)};
  }
  const at::Tensor finite = log_ratio.isfinite();
  const at::Tensor accept_prob =
      at::where(finite, log_ratio.clamp_max(0.0).exp(), at::zeros_like(log_ratio));
  const at::Tensor accepted = fill_uniform(at::empty_like(accept_prob), rng) < accept_prob;
  return {where(accepted, proposal, particles), accept_prob,
          (~finite & ~proposal.log_gamma.isneginf()).sum()};
}

}  // namespace crais
