// The posterior of a VAE's latent, unnormalised: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "core/affine_map.h"
#include "core/target.h"
#include "kernels/fused_decoder.h"
#include "models/vae.h"

namespace crais {

/// gamma_p(z) = N(z; 0, I) p(x_p | z) for P images. Value and gradient by hand: a matrix product a
/// layer forward and one back, no graph. On the CPU, in float32 and with Bernoulli pixels they come
/// from a FusedDecoder, elsewhere from ATen.
class VaePosterior : public Target {
 public:
  /// `images` [P, pixels] in [0, 1], on the decoder's device and of its dtype. The VAE must outlive
  /// it. `fused` is make_fused_decoder(vae), or null to use ATen always.
  VaePosterior(const Vae& vae, at::Tensor images, std::shared_ptr<const FusedDecoder> fused);
  /// With a fused decoder of its own; many posteriors of one VAE had better share it.
  VaePosterior(const Vae& vae, at::Tensor images);

  int64_t num_problems() const override { return images_.size(0); }
  int64_t dim() const override { return vae_.architecture.latent; }
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;

  /// What computes: "fused-avx512", ..., "aten".
  std::string evaluator() const { return fused_ ? fused_->name() : "aten"; }

 private:
  /// ATen computes the rest: other shapes and types, and what autograd is to follow.
  bool is_fused(const at::Tensor& z) const;

  const Vae& vae_;
  at::Tensor images_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: ATen
};

/// The base N(0, I) for P images.
AffineMap prior_base(const Vae& vae, int64_t num_images);

/// The base q(z | x), its standard deviations multiplied by `widening`. Throws Error kData if the
/// checkpoint has no encoder.
AffineMap encoder_base(const Vae& vae, const at::Tensor& images, double widening = 1.0);

/// N images drawn from the model, with the latents that made them: exact draws of their posteriors.
struct Simulated {
  at::Tensor images;   // [N, pixels]
  at::Tensor latents;  // [N, latent]
};
Simulated simulate(const Vae& vae, int64_t count, at::Generator& rng);

}  // namespace crais
