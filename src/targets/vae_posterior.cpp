#include "targets/vae_posterior.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/fused_decoder.h"
#include "kernels/processor.h"
#include "simd/simd_kernel.h"
#include "util/error.h"

namespace crais {
namespace {

at::Tensor prior_log_density(const at::Tensor& z) {
  const double log_scale = 0.5 * static_cast<double>(z.size(-1)) * std::log(2.0 * M_PI);
  return -0.5 * z.square().sum(-1) - log_scale;
}

at::Tensor normal_density(const at::Tensor& x) {
  return (-0.5 * x.square()).exp_().div_(std::sqrt(2 * M_PI));
}

/// d activation / d input, from the activation's input and output.
at::Tensor slope(Activation activation, const at::Tensor& input, const at::Tensor& output) {
  switch (activation.kind) {
    case Activation::kIdentity:
      return at::ones_like(output);
    case Activation::kTanh:
      return 1 - output.square();
    case Activation::kElu:
      return at::where(output > 0, at::ones_like(output), output + 1);
    case Activation::kRelu:
      return (output > 0).to(output.scalar_type());
    case Activation::kLeakyRelu:
      return at::where(output > 0, at::ones_like(output), at::full_like(output, activation.leak));
    case Activation::kSoftplus:
      return -at::expm1(-output);
    case Activation::kSigmoid:
      return output * (1 - output);
    case Activation::kSilu: {
      const at::Tensor s = at::sigmoid(input);
      return s * (1 + input * (1 - s));
    }
    case Activation::kGelu:
      return at::special_ndtr(input).addcmul_(input, normal_density(input));
  }
  throw internal_error("unknown activation");
}

/// d log p(x | output) / d output, in the memory of `output`.
at::Tensor likelihood_grad(const Likelihood& likelihood, const at::Tensor& x, at::Tensor output) {
  if (likelihood.family == Likelihood::Family::kBernoulli)
    return at::sub_out(output, x, output.sigmoid_());
  return at::sub_out(output, x, output).div_(likelihood.noise_sd * likelihood.noise_sd);
}

// Sizes of blocks on the CPU, to stay in a cache.
constexpr int64_t kRowsPerBlock = 512;                     // of an evaluation by ATen
constexpr int64_t kNumbersPerJacobian = int64_t{1} << 18;  // [P,D,pixels]

Evaluation aten_evaluate(const Vae& vae, const at::Tensor& x, const at::Tensor& z,
                         std::optional<at::ScalarType> forces) {
  const std::vector<LinearLayer>& layers = vae.decoder.layers;
  const Activation activation = vae.decoder.activation;
  std::vector<at::Tensor> slopes;
  at::Tensor hidden = z;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const at::Tensor input = at::linear(hidden, layers[i].weight, layers[i].bias);
    hidden = activate(activation, input);
    slopes.push_back(slope(activation, input, hidden));
  }
  const at::Tensor output = at::linear(hidden, layers.back().weight, layers.back().bias);
  const Likelihood& likelihood = vae.architecture.likelihood;
  const at::Tensor log_density = prior_log_density(z) + likelihood.log_prob(x, output);

  const auto back = [&](const at::Tensor& grad, const at::Tensor& weight) {
    if (!forces) return at::matmul(grad, weight);
    return at::matmul(grad.to(*forces), weight.to(*forces)).to(z.scalar_type());
  };
  at::Tensor grad = back(likelihood_grad(likelihood, x, output), layers.back().weight);
  for (size_t i = layers.size() - 1; i > 0; --i)
    grad = back(grad.mul_(slopes[i - 1]), layers[i - 1].weight);
  return {log_density, grad.sub_(z)};
}

/// Runs `evaluate` on blocks of whole images, or of the particles of one, and joins the results.
/// Logits of all particles at once would fill the memory and no cache: with 512 rows an evaluation
/// takes four fifths of the time that it takes with 4,096.
Evaluation in_blocks(
    const at::Tensor& x, const at::Tensor& z,
    const std::function<Evaluation(const at::Tensor&, const at::Tensor&)>& evaluate) {
  const int64_t problems = z.size(0), particles = z.size(1);
  if (!z.is_cpu() || problems * particles <= kRowsPerBlock) return evaluate(x, z);
  const int64_t dim = problems > 1 ? 0 : 1;
  const int64_t step =
      problems > 1 ? std::max<int64_t>(1, kRowsPerBlock / particles) : kRowsPerBlock;
  std::vector<at::Tensor> log_density, grad;
  for (int64_t begin = 0; begin < z.size(dim); begin += step) {
    const int64_t end = std::min(begin + step, z.size(dim));
    const Evaluation part =
        in_blocks(dim == 0 ? x.slice(0, begin, end) : x, z.slice(dim, begin, end), evaluate);
    log_density.push_back(part.log_density);
    if (part.grad.defined()) grad.push_back(part.grad);
  }
  return {at::cat(log_density, dim), grad.empty() ? at::Tensor() : at::cat(grad, dim)};
}

/// I + J W J^T of each problem, for J [P D, pixels] in bfloat16 and the roots of W [P, pixels].
at::Tensor grams_of_bfloat16(const at::Tensor& jacobian, const at::Tensor& roots) {
  const int64_t num = roots.size(0), pixels = roots.size(1), dim = jacobian.size(0) / num;
  const at::Tensor narrow = jacobian.contiguous(), scale = roots.contiguous();
  at::Tensor found = at::empty({num, dim, dim}, roots.options());
  at::Tensor scratch = at::empty({gram_scratch(dim, pixels)}, roots.options());
  const auto* const x = reinterpret_cast<const uint16_t*>(narrow.data_ptr<at::BFloat16>());
  for (int64_t p = 0; p < num; ++p)
    simd_kernel().gram(x + p * dim * pixels, scale.data_ptr<float>() + p * pixels, dim, pixels,
                       scratch.data_ptr<float>(), found.data_ptr<float>() + p * dim * dim);
  found.diagonal(0, 1, 2).add_(1);
  return found;
}

}  // namespace

VaePosterior::VaePosterior(const Vae& vae, const at::Tensor& images, at::Tensor latents)
    : VaePosterior(vae, images, std::move(latents), make_fused_decoder(vae)) {}

VaePosterior::VaePosterior(Vae vae, const at::Tensor& images, at::Tensor latents,
                           std::shared_ptr<const FusedDecoder> fused)
    : vae_(std::move(vae)),
      images_(images.contiguous()),
      latents_(std::move(latents)),
      fused_(std::move(fused)) {
  const int64_t latent = vae_.architecture.latent;
  TORCH_CHECK(images_.dim() == 2 && images_.size(1) == vae_.architecture.num_pixels(),
              "VAE posterior: images must be [P, ", vae_.architecture.num_pixels(), "], got ",
              images_.sizes());
  TORCH_CHECK(!latents_.defined() || latents_.sizes() == at::IntArrayRef({images_.size(0), latent}),
              "VAE posterior: latents must be [P, ", latent, "], got ", latents_.sizes());
}

std::string VaePosterior::evaluator() const { return fused_ ? fused_->name() : "aten"; }

bool VaePosterior::is_fused(const at::Tensor& z) const {
  const auto is_plain = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat &&
           !(c10::GradMode::is_enabled() && x.requires_grad());
  };
  return fused_ && is_plain(z) && is_plain(images_) && z.dim() == 3 && z.size(0) == images_.size(0);
}

at::Tensor VaePosterior::log_density(const at::Tensor& z) const {
  if (is_fused(z)) return fused_->log_density(z.contiguous(), images_);
  return in_blocks(images_.unsqueeze(1), z,
                   [this](const at::Tensor& x, const at::Tensor& part) {
                     return Evaluation{
                         prior_log_density(part) +
                             vae_.architecture.likelihood.log_prob(x, vae_.decoder.forward(part)),
                         {}};
                   })
      .log_density;
}

Evaluation VaePosterior::evaluate(const at::Tensor& z) const {
  if (is_fused(z)) return fused_->evaluate(z.contiguous(), images_);
  return in_blocks(images_.unsqueeze(1), z, [this](const at::Tensor& x, const at::Tensor& part) {
    return aten_evaluate(vae_, x, part, forces_);
  });
}

std::shared_ptr<const Target> VaePosterior::with_forces(at::ScalarType dtype) const {
  auto cheap = std::make_shared<VaePosterior>(*this);
  const bool has_kernel = forces_pay(dtype);
  cheap->fused_ = has_kernel ? fused_->cheap() : nullptr;
  if (!has_kernel) cheap->forces_ = dtype;
  return cheap;
}

bool VaePosterior::forces_pay(at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && fused_ && fused_->cheap() && images_.scalar_type() == at::kFloat;
}

std::shared_ptr<const Target> VaePosterior::select(const at::Tensor& index) const {
  auto some = std::make_shared<VaePosterior>(*this);
  some->images_ = images_.index_select(0, index);
  if (latents_.defined()) some->latents_ = latents_.index_select(0, index);
  return some;
}

at::Tensor VaePosterior::curvature(const at::Tensor& z) const {
  const bool narrow =
      fused_ && z.is_cpu() && z.scalar_type() == at::kFloat && has_bfloat16_products();
  const int64_t block = std::max<int64_t>(
      1, (narrow ? 4 : 1) * kNumbersPerJacobian / (z.size(1) * vae_.architecture.num_pixels()));
  Jacobians jacobians;
  at::Tensor hidden = z;
  for (const LinearLayer& layer : vae_.decoder.layers) {
    const bool first = jacobians.across.empty();
    jacobians.across.push_back(
        (narrow && !first ? layer.weight.to(at::kBFloat16) : layer.weight).t());
    hidden = at::linear(hidden, layer.weight, layer.bias);
    if (jacobians.across.size() == vae_.decoder.layers.size()) break;
    const at::Tensor input = hidden;
    hidden = activate(vae_.decoder.activation, input);
    jacobians.slopes.push_back(slope(vae_.decoder.activation, input, hidden));
  }
  const Likelihood& likelihood = vae_.architecture.likelihood;
  if (likelihood.family == Likelihood::Family::kBernoulli) {
    const at::Tensor s = at::sigmoid(hidden);
    jacobians.slopes.push_back((s * (1 - s)).sqrt());  // the root of W
  } else {
    jacobians.slopes.push_back(at::full_like(hidden, 1 / likelihood.noise_sd));
  }
  if (z.size(0) <= block || !z.is_cpu()) return curvature_block(jacobians);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < z.size(0); begin += block) {
    Jacobians part{jacobians.across, {}};
    for (const at::Tensor& all : jacobians.slopes)
      part.slopes.push_back(all.slice(0, begin, std::min(begin + block, z.size(0))));
    parts.push_back(curvature_block(part));
  }
  return at::cat(parts);
}

int64_t VaePosterior::working_memory() const {
  int64_t widths = 0;
  for (const LinearLayer& layer : vae_.decoder.layers) widths += layer.weight.size(0);
  const int64_t pixels = vae_.architecture.num_pixels();
  const int64_t jacobians =
      4 * std::min(num_problems() * dim() * pixels, std::max(kNumbersPerJacobian, dim() * pixels));
  const int64_t evaluation = fused_ ? 0 : kRowsPerBlock * (widths + 6 * pixels);
  return static_cast<int64_t>(images_.element_size()) * std::max(jacobians, evaluation);
}

at::Tensor VaePosterior::curvature_block(const Jacobians& of) {
  const int64_t num = of.slopes.front().size(0), dim = of.across.front().size(0);
  const at::ScalarType type = of.slopes.front().scalar_type();
  // Rows are (problem, latent) pairs, so that every product is one large one.
  at::Tensor jacobian = of.across.front().contiguous().repeat({num, 1, 1});
  for (size_t i = 1; i < of.across.size(); ++i) {
    jacobian.mul_(of.slopes[i - 1].unsqueeze(1));
    const at::Tensor rows = jacobian.view({num * dim, jacobian.size(2)});
    jacobian = at::mm(rows.to(of.across[i].scalar_type()), of.across[i]);
    if (i + 1 < of.across.size() || jacobian.scalar_type() == type)
      jacobian = jacobian.to(type).view({num, dim, jacobian.size(1)});
  }
  if (jacobian.scalar_type() != type) return grams_of_bfloat16(jacobian, of.slopes.back());
  jacobian.mul_(of.slopes.back().unsqueeze(1));
  return at::baddbmm(at::eye(dim, jacobian.options()), jacobian, jacobian.transpose(1, 2));
}

int64_t VaePosterior::curvature_cost() const {
  const std::vector<LinearLayer>& layers = vae_.decoder.layers;
  int64_t weights = 0;
  for (const LinearLayer& layer : layers) weights += layer.weight.numel();
  const int64_t evaluation = std::max<int64_t>(1, 2 * weights);  // a decoder has weights
  const int64_t jacobian = dim() * (weights - layers.front().weight.numel());
  const int64_t product = dim() * dim() * vae_.architecture.num_pixels();
  return (jacobian + product + evaluation - 1) / evaluation;
}

std::optional<AffineMap> VaePosterior::amortised_base() const {
  if (vae_.encoder.empty()) return {};
  const Vae::Posterior q = vae_.encode(images_);
  return AffineMap::encoded(q.mean, (0.5 * q.log_var).exp());
}

std::vector<std::string> VaePosterior::base_candidates() const {
  if (vae_.architecture.likelihood.family == Likelihood::Family::kGaussian)
    return {"best:1.1", "prior"};
  return Target::base_candidates();
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
