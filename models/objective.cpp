#include "models/objective.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

at::Tensor log_mean_exp(const at::Tensor& log_w) {
  return at::logsumexp(log_w, 0) - std::log(static_cast<double>(log_w.size(0)));
}

}  // namespace

Objective parse_objective(const std::string& text) {
  Spec spec(text);
  Objective objective;
  if (spec.name() == "iwae")
    objective = {Objective::Kind::kIwae, spec.integer("samples", 1, 100000)};
  else if (spec.name() != "elbo")
    throw argument_error("unknown objective '", text, "'; choose from elbo, iwae:K");
  spec.finish();
  return objective;
}

std::string to_string(const Objective& objective) {
  if (objective.kind == Objective::Kind::kElbo) return "elbo";
  return "iwae:" + std::to_string(objective.samples);
}

at::Tensor kl_divergence(const Vae::Posterior& posterior) {
  const auto& [mean, log_var] = posterior;
  return 0.5 * (mean.square() + log_var.exp() - log_var - 1.0).sum(-1);
}

Bounds evaluate(const Objective& objective, const Vae& vae, const at::Tensor& x,
                const at::Tensor& noise, double kl_weight) {
  const Vae::Posterior posterior = vae.encode(x);
  const at::Tensor z = posterior.mean + (0.5 * posterior.log_var).exp() * noise;  // [K, B, latent]
  const at::Tensor output =
      vae.decoder.forward(z.flatten(0, 1)).view({noise.size(0), x.size(0), x.size(1)});
  const at::Tensor reconstruction = vae.architecture.likelihood.log_prob(x, output);  // [K, B]

  Bounds bounds{.kl = kl_divergence(posterior)};
  const at::Tensor mean_reconstruction = reconstruction.mean(0);
  bounds.elbo = mean_reconstruction - bounds.kl;
  if (objective.kind == Objective::Kind::kElbo) {
    bounds.bound = bounds.elbo;
    bounds.maximised = kl_weight == 1.0 ? bounds.elbo : mean_reconstruction - kl_weight * bounds.kl;
    return bounds;
  }
  // log p(z) - log q(z | x); the constants cancel.
  const at::Tensor log_ratio =
      0.5 * (noise.square().sum(-1) - z.square().sum(-1) + posterior.log_var.sum(-1));
  bounds.bound = log_mean_exp(reconstruction + log_ratio);
  bounds.maximised =
      kl_weight == 1.0 ? bounds.bound : log_mean_exp(reconstruction + kl_weight * log_ratio);
  return bounds;
}

double Decay::rate(double initial, int64_t epoch, int64_t num_epochs) const {
  if (!final_rate) return initial;
  const double last = std::max(1.0, static_cast<double>(num_epochs - 1));
  const double progress = std::min(1.0, static_cast<double>(epoch) / last);
  return *final_rate + 0.5 * (initial - *final_rate) * (1.0 + std::cos(M_PI * progress));
}

Decay parse_decay(const std::string& text) {
  Spec spec(text);
  Decay decay;
  if (spec.name() == "cosine")
    decay.final_rate = spec.number("final", 0.0, 1.0, 0.0);
  else if (spec.name() != "none")
    throw argument_error("unknown decay '", text, "'; choose from none, cosine:FINAL");
  spec.finish();
  return decay;
}

std::string to_string(const Decay& decay) {
  if (!decay.final_rate) return "none";
  std::ostringstream stream;
  stream.precision(17);
  stream << "cosine:" << *decay.final_rate;
  return stream.str();
}

}  // namespace crais
