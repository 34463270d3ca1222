#include "targets/vae_posterior.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"

namespace crais {
namespace {

at::Tensor prior_log_density(const at::Tensor& z) {
  const double log_scale = 0.5 * static_cast<double>(z.size(-1)) * std::log(2.0 * M_PI);
  return -0.5 * z.square().sum(-1) - log_scale;
}

/// d activation / d input, from the activation's output.
at::Tensor slope(Activation activation, const at::Tensor& output) {
  switch (activation) {
    case Activation::kTanh:
      return 1 - output.square();
    case Activation::kElu:
      return at::where(output > 0, at::ones_like(output), output + 1);
    case Activation::kRelu:
      return (output > 0).to(output.scalar_type());
    case Activation::kSoftplus:
      return -at::expm1(-output);
  }
  throw Error(ExitCode::kInternal, "unknown activation");
}

/// d log p(x | output) / d output.
at::Tensor likelihood_grad(const Likelihood& likelihood, const at::Tensor& x,
                           const at::Tensor& output) {
  if (likelihood.family == Likelihood::Family::kBernoulli) return x - at::sigmoid(output);
  return (x - output) / (likelihood.noise_sd * likelihood.noise_sd);
}

}  // namespace

VaePosterior::VaePosterior(const Vae& vae, at::Tensor images)
    : VaePosterior(vae, std::move(images), make_fused_decoder(vae)) {}

VaePosterior::VaePosterior(const Vae& vae, at::Tensor images,
                           std::shared_ptr<const FusedDecoder> fused)
    : vae_(vae), images_(images.contiguous()), fused_(std::move(fused)) {
  TORCH_CHECK(images_.dim() == 2 && images_.size(1) == vae_.architecture.num_pixels(),
              "VAE posterior: images must be [P, ", vae_.architecture.num_pixels(), "], got ",
              images_.sizes());
}

bool VaePosterior::is_fused(const at::Tensor& z) const {
  const auto is_plain = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat &&
           !(c10::GradMode::is_enabled() && x.requires_grad());
  };
  return fused_ && is_plain(z) && is_plain(images_) && z.dim() == 3 && z.size(0) == images_.size(0);
}

at::Tensor VaePosterior::log_density(const at::Tensor& z) const {
  if (is_fused(z)) return fused_->log_density(z.contiguous(), images_);
  const at::Tensor output = vae_.decoder.forward(z);
  return prior_log_density(z) + vae_.architecture.likelihood.log_prob(images_.unsqueeze(1), output);
}

Evaluation VaePosterior::evaluate(const at::Tensor& z) const {
  if (is_fused(z)) return fused_->evaluate(z.contiguous(), images_);
  const std::vector<LinearLayer>& layers = vae_.decoder.layers;
  const Activation activation = vae_.decoder.activation;
  std::vector<at::Tensor> hidden = {z};
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    hidden.push_back(
        activate(activation, at::linear(hidden.back(), layers[i].weight, layers[i].bias)));
  const at::Tensor output = at::linear(hidden.back(), layers.back().weight, layers.back().bias);
  const at::Tensor x = images_.unsqueeze(1);
  const Likelihood& likelihood = vae_.architecture.likelihood;

  at::Tensor grad = at::matmul(likelihood_grad(likelihood, x, output), layers.back().weight);
  for (size_t i = layers.size() - 1; i > 0; --i)
    grad = at::matmul(grad * slope(activation, hidden[i]), layers[i - 1].weight);
  return {prior_log_density(z) + likelihood.log_prob(x, output), grad - z};
}

AffineMap prior_base(const Vae& vae, int64_t num_images) {
  return AffineMap::identity(num_images, vae.architecture.latent,
                             vae.decoder.layers.front().weight.options());
}

AffineMap encoder_base(const Vae& vae, const at::Tensor& images, double widening) {
  if (vae.encoder.empty()) throw data_error("this checkpoint has no encoder; use --base prior");
  const Vae::Posterior q = vae.encode(images);
  return {q.mean, (0.5 * q.log_var).exp() * widening};
}

Simulated simulate(const Vae& vae, int64_t count, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  const at::TensorOptions options = vae.decoder.layers.front().weight.options();
  const at::Tensor z = at::empty({count, vae.architecture.latent}, options).normal_(0, 1, rng);
  const at::Tensor output = vae.decoder.forward(z);
  const Likelihood& likelihood = vae.architecture.likelihood;
  if (likelihood.family == Likelihood::Family::kBernoulli) {
    const at::Tensor u = at::empty_like(output).uniform_(0, 1, rng);
    return {(u < at::sigmoid(output)).to(output.scalar_type()), z};
  }
  return {output + likelihood.noise_sd * at::empty_like(output).normal_(0, 1, rng), z};
}

}  // namespace crais
