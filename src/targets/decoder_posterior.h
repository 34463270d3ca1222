/// @file
/// The unnormalised posterior of a model's latent: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "models/latent_model.h"
#include "models/vae.h"

namespace crais {

class FusedDecoder;

/// The fused evaluator of a model whose decoder is known layer by layer (LatentModel::decoder),
/// with the processor's fastest kernel. Null if there is none, or if CRAIS_EVALUATOR is aten.
std::shared_ptr<const FusedDecoder> fused_decoder_of(const LatentModel& model);

/// The name of the evaluator that computes a model's posteriors with these forces: "fused-avx512",
/// "aten", "aoti", ...
std::string evaluator_of(const LatentModel& model, const FusedDecoder* fused,
                         std::optional<at::ScalarType> forces);

/// gamma_p(z) = p(x_p, z) of P data under a LatentModel. One of three evaluators computes density
/// and gradient: a fused evaluator if the decoder has one (on the CPU, in float32), manual ATen
/// code if the model is weights (LatentModel::is_network), else the model's own functions.
///
///     auto model = crais::read_package_model("vae.pt2");
///     crais::DecoderPosterior target(model, images);  // [P, ...] as the likelihood takes them
///     crais::Result r = crais::estimate_log_normalizer(target);
///
///     crais::Checkpoint checkpoint = crais::read_checkpoint("vae.safetensors");
///     crais::DecoderPosterior target(checkpoint.vae, images);  // [P, pixels] in [0, 1]
class DecoderPosterior : public Target {
 public:
  /// `data` [P, ...] have the model's shape or are flat, on the model's device and of its type.
  /// `latents` [P,D] are the latents that simulated data were made from; else undefined. `labels`
  /// [P, ...] are those of a conditional model p(x | y). Throws Error kArgument if sizes do not
  /// fit. `fused` is an evaluator that several posteriors share, or null for no fused evaluator.
  /// Default: fused_decoder_of(*model).
  DecoderPosterior(std::shared_ptr<const LatentModel> model, const at::Tensor& data,
                   at::Tensor latents = {}, at::Tensor labels = {},
                   std::optional<std::shared_ptr<const FusedDecoder>> fused = {});
  /// The posterior of a VAE given by its weights.
  explicit DecoderPosterior(const Vae& vae, const at::Tensor& images, at::Tensor latents = {},
                            std::optional<std::shared_ptr<const FusedDecoder>> fused = {});

  int64_t num_problems() const override { return data_.size(0); }
  int64_t dim() const override { return model_->description().latent; }
  /// Always computed by differentiable ATen code or the model's own functions. With the model's own
  /// functions it costs as much as `evaluate`.
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  /// A target with forces in `dtype`: of a fused evaluator that has them, else by ATen's backward
  /// products in `dtype`, or the model's own. Curvatures stay exact.
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;

  /// Gauss-Newton, P + J^T W J: J = d output / dz, W the likelihood's Fisher information, P minus
  /// the prior's Hessian. For a model that is weights, in closed form (gauss_newton), coarse if a
  /// fused evaluator is used and the processor multiplies bfloat16 matrices fast. Else J by central
  /// differences, and P by differences of the prior's gradient. Without an output to differentiate:
  /// minus the Hessian of log p(x, z), by differences of its gradient. In more than 256 dimensions:
  /// P plus minus the Hessian of log p(x | z), as 64 steps of Lanczos approximate it.
  at::Tensor curvature(const at::Tensor& z) const override;

  /// The encoder's q(z | x), if there is an encoder.
  std::optional<AffineMap> amortised_base() const override;
  /// k copies of the latent that made each datum, if it is known: an exact draw of the posterior.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  /// The name of the evaluator: see evaluator_of.
  std::string evaluator() const { return evaluator_of(*model_, fused_.get(), forces_); }

 private:
  /// The fused evaluator for z with these forces; null if another evaluator computes z.
  const FusedDecoder* fused_for(const at::Tensor& z, std::optional<at::ScalarType> forces) const;
  bool has_cheap_kernel(at::ScalarType dtype) const;
  /// The model's own functions always compute the gradient, even if it is not needed.
  Evaluation evaluated(const at::Tensor& z, std::optional<at::ScalarType> forces,
                       bool with_gradient = true) const;
  /// The density by the model's own functions, which take rows: z [N,D] and the problem of each row
  /// [N], in calls of at most `batch` rows, or fewer if a call fails. Throws Error kData or
  /// std::bad_alloc if a single row cannot be computed.
  LatentModel::Density density(const at::Tensor& z, const at::Tensor& owner, int64_t batch,
                               std::optional<at::ScalarType> forces) const;
  at::Tensor labels_of(const at::Tensor& index) const;  // undefined without labels
  /// d output / dz of one problem [] at z [D]: [D,M].
  at::Tensor jacobian(const at::Tensor& z, const at::Tensor& problem) const;
  /// Fisher weights [rows, M] of the output that `jacobian` differentiates, which may differ from
  /// the model's own output.
  at::Tensor fisher_weights(const at::Tensor& z, const at::Tensor& problems) const;
  at::Tensor prior_precision(const at::Tensor& z) const;  // [P,D] -> [P,D,D]
  at::Tensor hessian(const at::Tensor& z) const;          // [P,D] -> [P,D,D]
  at::Tensor low_rank(const at::Tensor& z) const;         // [P,D] -> [P,D,D]

  std::shared_ptr<const LatentModel> model_;
  const DecoderNetwork* by_hand_;  // of a model that is weights; else null
  at::Tensor data_;                // [P, ...] of the model's shape
  at::Tensor latents_;
  at::Tensor labels_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: none
  int64_t fused_rows_ = 1;                     // of a block
  std::optional<at::ScalarType> forces_;       // of products behind the gradient; not set: exact
};

}  // namespace crais
