#include "samplers/divergence.h"

#include "core/log_math.h"

namespace crais {

void DivergenceRecord::add(const at::Tensor& beta, const Particles& particles,
                           const at::Tensor& log_w) {
  const std::optional<double> order = path_.divergence().order();
  const at::Tensor kappa = particles.log_gamma - annealed_log_density(path_, beta, particles);
  const at::Tensor weights = log_normalise(log_w);
  const auto mean = [&](const at::Tensor& log_weights) {
    return (log_weights.exp() * kappa).sum(-1);
  };
  log_mass_.push_back(log_mean_exp(log_w));
  if (!order) {
    weights_.push_back(weights.exp());
    kappa_.push_back(kappa);
  } else if (*order == 0) {
    moment_.push_back(mean(weights));
  } else if (*order == 1) {
    // E_q[u log u] = E_pi[kappa] - log r. The same reweighting to the target gives both terms.
    moment_.push_back(mean(log_normalise(weights + kappa)) - at::logsumexp(weights + kappa, -1));
  } else {
    moment_.push_back(at::logsumexp(weights + *order * kappa, -1));
  }
}

at::Tensor DivergenceRecord::finish() const {
  const std::optional<double> order = path_.divergence().order();
  const at::Tensor log_mass = at::stack(log_mass_);
  const at::Tensor log_ratio = log_mass[-1] - log_mass;  // mass of the target over gamma_beta's
  if (!order) {
    const at::Tensor log_u = at::stack(kappa_) - log_ratio.unsqueeze(-1);
    const at::Tensor weights = at::stack(weights_);
    // f may be infinite at a particle of weight 0.
    return at::where(weights == 0, 0.0, weights * path_.divergence().f(log_u)).sum(-1);
  }
  at::Tensor moment = at::stack(moment_);
  if (*order == 0) return log_ratio - moment;
  if (*order == 1) return moment;
  return at::expm1(moment - *order * log_ratio) / (*order * (*order - 1));
}

void BarrierRecord::add(const at::Tensor& beta, const Particles& particles,
                        const at::Tensor& log_w) {
  if (beta_.defined()) {
    const at::Tensor share = at::softmax(log_w, 1);
    const at::Tensor work = annealed_log_density(path_, beta, particles) -
                            annealed_log_density(path_, beta_, particles);
    const at::Tensor deviation = work - (share * work).sum(1, /*keepdim=*/true);
    const at::Tensor step = (share * deviation.square()).sum(1).sqrt();
    sum_ = sum_.defined() ? sum_ + step : step;
  }
  beta_ = beta.clone();
}

}  // namespace crais
