#include "targets/decoder_target.h"

#include <c10/core/GradMode.h>

#include <memory>
#include <string>

#include "models/function_model.h"
#include "util/error.h"

namespace crais {
namespace {

/// Throws Error kArgument if the decoder's output is not as large as an image.
void check_sizes(const DecoderTarget::Options& options, const at::Tensor& images) {
  if (!options.decode || options.latent_dim < 1 || images.dim() < 2 || images.size(0) < 1)
    throw argument_error(
        "a DecoderTarget needs a decoder, a latent dimension of at least 1 and images [P, ...]");
  const c10::NoGradGuard no_grad;
  const at::Tensor output = options.decode(at::zeros({1, options.latent_dim}, images.options()));
  if (output.defined() && output.numel() == images[0].numel()) return;
  throw argument_error("the decoder makes ",
                       (output.defined() ? c10::str(output.sizes()) : "nothing"),
                       " of one latent; an image has ", images[0].numel(), " numbers");
}

std::shared_ptr<const LatentModel> model_of(const DecoderTarget::Options& options,
                                            const at::Tensor& images) {
  check_sizes(options, images);
  ModelDescription model{.name = "a decoder", .kind = "in memory", .latent = options.latent_dim};
  model.data_shape = images.sizes().slice(1).vec();
  model.set_likelihood(options.likelihood);
  return decoder_model(model, {options.decode, options.encode, options.likelihood},
                       {images.device(), "autograd", "the decoder"});
}

}  // namespace

DecoderTarget::DecoderTarget(const Options& options, const at::Tensor& images)
    : DecoderPosterior(model_of(options, images), images, options.latents) {}

}  // namespace crais
