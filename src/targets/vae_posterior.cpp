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

VaePosterior::VaePosterior(const Vae& vae, at::Tensor images, at::Tensor latents)
    : VaePosterior(vae, std::move(images), std::move(latents), make_fused_decoder(vae)) {}

VaePosterior::VaePosterior(const Vae& vae, at::Tensor images, at::Tensor latents,
                           std::shared_ptr<const FusedDecoder> fused)
    : vae_(vae),
      images_(images.contiguous()),
      latents_(std::move(latents)),
      fused_(std::move(fused)) {
  TORCH_CHECK(images_.dim() == 2 && images_.size(1) == vae_.architecture.num_pixels(),
              "VAE posterior: images must be [P, ", vae_.architecture.num_pixels(), "], got ",
              images_.sizes());
  TORCH_CHECK(!latents_.defined() || latents_.sizes() == at::IntArrayRef({images_.size(0), dim()}),
              "VAE posterior: latents must be [P, ", dim(), "], got ", latents_.sizes());
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

std::unique_ptr<Target> VaePosterior::select(const at::Tensor& index) const {
  return std::make_unique<VaePosterior>(
      vae_, images_.index_select(0, index),
      latents_.defined() ? latents_.index_select(0, index) : latents_, fused_);
}

at::Tensor VaePosterior::curvature(const at::Tensor& z) const {
  const std::vector<LinearLayer>& layers = vae_.decoder.layers;
  const Activation activation = vae_.decoder.activation;
  const int64_t num = z.size(0), dim = z.size(1);
  // Rows are (problem, latent) pairs, so that every product is one large one.
  at::Tensor hidden = z, jacobian;
  for (size_t i = 0; i < layers.size(); ++i) {
    const at::Tensor across = layers[i].weight.t();
    jacobian = i == 0 ? across.expand({num, dim, across.size(1)})
                      : at::mm(jacobian.reshape({num * dim, across.size(0)}), across)
                            .view({num, dim, across.size(1)});
    hidden = at::linear(hidden, layers[i].weight, layers[i].bias);
    if (i + 1 == layers.size()) break;
    hidden = activate(activation, hidden);
    jacobian = jacobian * slope(activation, hidden).unsqueeze(1);
  }
  const Likelihood& likelihood = vae_.architecture.likelihood;
  at::Tensor root;  // of W
  if (likelihood.family == Likelihood::Family::kBernoulli) {
    const at::Tensor s = at::sigmoid(hidden);
    root = (s * (1 - s)).sqrt().unsqueeze(1);
  } else {
    root = at::full_like(hidden, 1 / likelihood.noise_sd).unsqueeze(1);
  }
  const at::Tensor scaled = jacobian * root;
  return at::baddbmm(at::eye(dim, z.options()), scaled, scaled.transpose(1, 2));
}

int64_t VaePosterior::curvature_cost() const {
  int64_t jacobian = 0, evaluation = 0;
  for (const LinearLayer& layer : vae_.decoder.layers) {
    evaluation += 2 * layer.weight.numel();
    if (evaluation > 2 * layer.weight.numel()) jacobian += dim() * layer.weight.numel();
  }
  const int64_t product = dim() * dim() * vae_.architecture.num_pixels();
  return (jacobian + product + evaluation - 1) / evaluation;
}

std::optional<AffineMap> VaePosterior::amortised_base() const {
  if (vae_.encoder.empty()) return {};
  const Vae::Posterior q = vae_.encode(images_);
  return AffineMap(q.mean, (0.5 * q.log_var).exp());
}

std::optional<at::Tensor> VaePosterior::exact_sample(int64_t k, at::Generator& /*rng*/) const {
  if (!latents_.defined()) return {};
  return latents_.unsqueeze(1).repeat({1, k, 1});
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
