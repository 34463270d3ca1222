// The posterior of a VAE's latent, unnormalised: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include "core/affine_map.h"
#include "core/target.h"
#include "models/vae.h"

namespace crais {

/// gamma_p(z) = N(z; 0, I) p(x_p | z) for P images. Value and gradient by hand for MLP decoders:
/// three matrix products forward and three back, no graph.
class VaePosterior : public Target {
 public:
  /// `images` [P, pixels] in [0, 1], on the decoder's device and of its dtype. The VAE must outlive
  /// it.
  VaePosterior(const Vae& vae, at::Tensor images);

  int64_t num_problems() const override { return images_.size(0); }
  int64_t dim() const override { return vae_.architecture.latent; }
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;

 private:
  const Vae& vae_;
  at::Tensor images_;
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
