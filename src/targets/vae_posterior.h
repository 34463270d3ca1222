/// @file
/// The posterior of a VAE's latent, unnormalised: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/affine_map.h"
#include "core/target.h"
#include "models/vae.h"

namespace crais {

class FusedDecoder;

/// gamma_p(z) = N(z; 0, I) p(x_p | z) for P images. Value and gradient by hand: a matrix product a
/// layer forward and one back, no graph. On the CPU, in float32 and with Bernoulli pixels they come
/// from a FusedDecoder, elsewhere from ATen.
///
///     crais::Checkpoint checkpoint = crais::read_checkpoint("vae.safetensors");
///     crais::VaePosterior target(checkpoint.vae, images);  // [P, pixels] in [0, 1]
///     crais::Result r = crais::estimate_log_normalizer(target);
class VaePosterior : public Target {
 public:
  /// `images` [P, pixels] in [0, 1], on the decoder's device and of its dtype. `latents` [P,D],
  /// where the images were simulated, are what they were simulated from; else undefined. `fused` is
  /// make_fused_decoder(vae), or null to use ATen always.
  VaePosterior(Vae vae, const at::Tensor& images, at::Tensor latents,
               std::shared_ptr<const FusedDecoder> fused);
  /// With a fused decoder of its own; many posteriors of one VAE had better share it.
  explicit VaePosterior(const Vae& vae, const at::Tensor& images, at::Tensor latents = {});

  int64_t num_problems() const override { return images_.size(0); }
  int64_t dim() const override { return vae_.architecture.latent; }
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  /// From `fused` where it has such a kernel, else ATen's products back in `dtype`.
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  /// Where there is a fused kernel with such forces.
  bool forces_pay(at::ScalarType dtype) const override;
  bool is_replayable() const override { return true; }
  at::TensorOptions options() const override { return images_.options(); }
  bool can_select() const override { return true; }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;

  /// Gauss-Newton: I + J^T W J, with J = d output / dz in closed form (a product per layer) and W
  /// the likelihood's own curvature, s(1 - s) for Bernoulli pixels. Positive definite. Where the
  /// processor multiplies bfloat16 matrices fast, and a fused evaluator is in use, entries of J are
  /// rounded to 1 in 256, which moves J^T W J by less than a hundredth of its diagonal.
  at::Tensor curvature(const at::Tensor& z) const override;
  /// By multiply-adds: those of J and J^T W J over those of an evaluation.
  int64_t curvature_cost() const override;

  /// q(z | x), if there is an encoder.
  std::optional<AffineMap> amortised_base() const override;
  /// Gaussian pixels make sharp modes beside each other: several starts.
  std::vector<std::string> base_candidates() const override;
  /// k times the latent that made each image, if it is known: an exact draw of its posterior.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  /// Work is cut into blocks of a fixed size.
  int64_t working_memory() const override;

  /// What computes: "fused-avx512", ..., "aten".
  std::string evaluator() const;

 private:
  /// ATen computes the rest: other shapes and types, and what autograd is to follow.
  bool is_fused(const at::Tensor& z) const;
  /// What the Jacobians of some problems are products of.
  struct Jacobians {
    std::vector<at::Tensor> across;  // of each layer, W^T in the type of its product
    std::vector<at::Tensor> slopes;  // [P, outputs] of each layer; of the last, the root of W
  };
  static at::Tensor curvature_block(const Jacobians& of);

  Vae vae_;
  at::Tensor images_;
  at::Tensor latents_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: ATen
  std::optional<at::ScalarType> forces_;       // of ATen's way back, where not the images' own
};

/// N images drawn from the model, with the latents that made them: exact draws of their posteriors.
struct Simulated {
  at::Tensor images;   // [N, pixels]
  at::Tensor latents;  // [N, latent]
};
Simulated simulate(const Vae& vae, int64_t count, at::Generator& rng);

}  // namespace crais
