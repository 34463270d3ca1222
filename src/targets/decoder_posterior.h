/// @file
/// The posterior of a model's latent, unnormalised: its normaliser is p(x).
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

/// The fused evaluator of a model whose decoder is known layer by layer (LatentModel::decoder), by
/// the processor's fastest kernel; null where there is none, or CRAIS_EVALUATOR is aten.
std::shared_ptr<const FusedDecoder> fused_decoder_of(const LatentModel& model);

/// What computes the posteriors of a model, with such forces: "fused-avx512", "aten", "aoti", ...
std::string evaluator_of(const LatentModel& model, const FusedDecoder* fused,
                         std::optional<at::ScalarType> forces);

/// gamma_p(z) = p(x_p, z) of P data under a LatentModel. Density and gradient come from one of
/// three evaluators: a fused one where the model's decoder has it (on the CPU, in float32), by hand
/// in ATen where the model is weights (LatentModel::is_network), else the model's own functions.
///
///     auto model = crais::read_package_model("vae.pt2");
///     crais::DecoderPosterior target(model, images);  // [P, ...] as the likelihood takes them
///     crais::Result r = crais::estimate_log_normalizer(target);
///
///     crais::Checkpoint checkpoint = crais::read_checkpoint("vae.safetensors");
///     crais::DecoderPosterior target(checkpoint.vae, images);  // [P, pixels] in [0, 1]
class DecoderPosterior : public Target {
 public:
  /// `data` [P, ...] of the model's shape, or flat, on its device and of its type. `latents` [P,D],
  /// where the data were simulated, are what they were simulated from; else undefined. `labels`
  /// [P, ...] are those of a conditional model p(x | y). Throws Error kArgument where sizes differ
  /// from these.
  /// `fused` is an evaluator that several posteriors share, or null to have none that is fused;
  /// where it is left out, fused_decoder_of(*model).
  DecoderPosterior(std::shared_ptr<const LatentModel> model, const at::Tensor& data,
                   at::Tensor latents = {}, at::Tensor labels = {},
                   std::optional<std::shared_ptr<const FusedDecoder>> fused = {});
  /// Of a VAE's own weights.
  explicit DecoderPosterior(const Vae& vae, const at::Tensor& images, at::Tensor latents = {},
                            std::optional<std::shared_ptr<const FusedDecoder>> fused = {});

  int64_t num_problems() const override { return data_.size(0); }
  int64_t dim() const override { return model_->description().latent; }
  at::TensorOptions options() const override { return data_.options(); }
  /// Differentiable by hand in ATen alone. As dear as `evaluate` by the model's own functions.
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  /// From a fused evaluator that has such forces, else ATen's products back in `dtype`, or the
  /// model's own. Curvatures stay exact.
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override;
  bool is_replayable() const override { return by_hand_ != nullptr; }
  bool can_select() const override { return true; }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;

  /// Gauss-Newton, P + J^T W J: J = d output / dz, W the likelihood's Fisher information, P minus
  /// the prior's Hessian. Of weights in closed form (gauss_newton), coarse where a fused evaluator
  /// is in use and the processor multiplies bfloat16 matrices fast. Else J by central differences,
  /// and P by differences of the prior's gradient; without an output to differentiate, minus the
  /// Hessian of log p(x, z) by differences of its gradient. In more than 256 dimensions, P and what
  /// 64 steps of Lanczos find of minus the Hessian of log p(x | z).
  at::Tensor curvature(const at::Tensor& z) const override;
  /// In closed form by its multiply-adds. Else 2 D outputs of half an evaluation each, or 2 D
  /// evaluations; 128 in more than 256 dimensions.
  int64_t curvature_cost() const override;

  /// q(z | x), if there is an encoder.
  std::optional<AffineMap> amortised_base() const override;
  /// All but MLPs with Bernoulli pixels have kinks, tails, and modes beside the one that was found.
  bool may_be_multimodal() const override;
  /// The normal of the prior's moments.
  AffineMap prior_base() const override;
  /// k times the latent that made each datum, if it is known: an exact draw of its posterior.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  /// What computes: see evaluator_of.
  std::string evaluator() const { return evaluator_of(*model_, fused_.get(), forces_); }

 private:
  /// What computes z with such forces; null: another evaluator.
  const FusedDecoder* fused_for(const at::Tensor& z, std::optional<at::ScalarType> forces) const;
  bool has_cheap_kernel(at::ScalarType dtype) const;
  /// The model's own functions bring the gradient whether it is asked for or not.
  Evaluation evaluated(const at::Tensor& z, std::optional<at::ScalarType> forces,
                       bool with_gradient = true) const;
  /// By the model's own functions of rows: z [N,D] with the problems that they belong to [N], in
  /// calls of at most `batch` rows; of fewer where a call fails. Throws Error kData, or
  /// std::bad_alloc, if one row cannot be computed.
  LatentModel::Density density(const at::Tensor& z, const at::Tensor& owner, int64_t batch,
                               std::optional<at::ScalarType> forces) const;
  at::Tensor labels_of(const at::Tensor& index) const;  // undefined without labels
  /// d output / dz of a problem [] at z [D]: [D,M].
  at::Tensor jacobian(const at::Tensor& z, const at::Tensor& problem) const;
  /// Of the output that `jacobian` is about, whatever the model's own output is: [rows, M].
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
