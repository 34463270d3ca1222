#include "targets/decoder_target.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <sstream>
#include <utility>

#include "models/autocast.h"
#include "util/error.h"

namespace crais {

DecoderTarget::DecoderTarget(Options options, const at::Tensor& images)
    : options_(std::move(options)), images_(images) {
  if (!options_.decode || options_.latent_dim < 1 || images_.dim() < 2 || images_.size(0) < 1)
    throw argument_error(
        "a DecoderTarget needs a decoder, a latent dimension of at least 1 and images [P, ...]");
  if (options_.latents.defined() &&
      options_.latents.sizes() != at::IntArrayRef({images_.size(0), options_.latent_dim}))
    throw argument_error("the latents of a DecoderTarget are one of each image");
  const c10::NoGradGuard no_grad;
  const at::Tensor output = options_.decode(at::zeros({1, options_.latent_dim}, images_.options()));
  if (!output.defined() || output.numel() != images_[0].numel()) {
    std::ostringstream message;
    message << "the decoder makes ";
    if (output.defined())
      message << output.sizes();
    else
      message << "nothing";
    message << " of one latent; an image has " << images_[0].numel() << " numbers";
    throw argument_error(message.str());
  }
}

at::Tensor DecoderTarget::log_density(const at::Tensor& z) const {
  const at::Tensor output =
      options_.decode(z.reshape({-1, z.size(-1)})).reshape({z.size(0), z.size(1), -1});
  const double log_scale = 0.5 * static_cast<double>(dim()) * std::log(2.0 * M_PI);
  const at::Tensor prior = -0.5 * z.square().sum(-1) - log_scale;
  return prior + options_.likelihood.log_prob(images_.flatten(1).unsqueeze(1), output);
}

Evaluation DecoderTarget::evaluate(const at::Tensor& z) const {
  if (forces_ == at::kFloat) return Target::evaluate(z);
  const c10::NoGradGuard no_grad;
  const at::Tensor value = log_density(z);
  const Autocast shorter(images_.device(), forces_);
  return {value, Target::evaluate(z).grad.to(z.scalar_type())};
}

std::shared_ptr<const Target> DecoderTarget::with_forces(at::ScalarType dtype) const {
  const bool can = dtype == at::kBFloat16 && images_.scalar_type() == at::kFloat &&
                   (images_.is_cpu() || images_.is_cuda());
  if (!can) return nullptr;
  auto target = std::make_shared<DecoderTarget>(*this);
  target->forces_ = dtype;
  return target;
}

std::shared_ptr<const Target> DecoderTarget::select(const at::Tensor& index) const {
  auto part = std::make_shared<DecoderTarget>(*this);
  part->images_ = images_.index_select(0, index);
  if (options_.latents.defined()) part->options_.latents = options_.latents.index_select(0, index);
  return part;
}

std::optional<at::Tensor> DecoderTarget::exact_sample(int64_t k, at::Generator& /*rng*/) const {
  if (!options_.latents.defined()) return {};
  return options_.latents.unsqueeze(1).repeat({1, k, 1});
}

std::optional<AffineMap> DecoderTarget::amortised_base() const {
  if (!options_.encode) return {};
  const c10::NoGradGuard no_grad;
  const Vae::Posterior q = options_.encode(images_);
  return AffineMap::encoded(q.mean, (0.5 * q.log_var).exp());
}

}  // namespace crais
