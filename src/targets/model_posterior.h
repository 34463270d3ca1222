/// @file
/// The posterior of an exported model's latent, unnormalised: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "models/latent_model.h"

namespace crais {

class FusedDecoder;

/// The fused evaluator of a model whose decoder is known layer by layer (LatentModel::decoder), by
/// the processor's fastest kernel; null where there is none, or CRAIS_EVALUATOR is aten.
std::shared_ptr<const FusedDecoder> fused_decoder_of(const LatentModel& model);

/// gamma_p(z) = p(x_p, z) of P data under a LatentModel.
///
///     auto model = crais::read_model_package("vae.pt2");
///     crais::ModelPosterior target(model, images);  // [P, ...] as the likelihood takes them
///     crais::Result r = crais::estimate_log_normalizer(target);
class ModelPosterior : public Target {
 public:
  /// `data` [P, ...] float32. `latents` [P,D], where the data were simulated, are what they were
  /// simulated from; else undefined. `labels` [P, ...] are those of a conditional model p(x | y).
  /// Density and gradient come from a fused evaluator where the model's decoder has one.
  ModelPosterior(const std::shared_ptr<const LatentModel>& model, const at::Tensor& data,
                 at::Tensor latents = {}, at::Tensor labels = {});
  /// The same with an evaluator that several posteriors share: fused_decoder_of(*model), or null to
  /// have the model's own functions always.
  ModelPosterior(std::shared_ptr<const LatentModel> model, const at::Tensor& data,
                 at::Tensor latents, at::Tensor labels, std::shared_ptr<const FusedDecoder> fused);

  int64_t num_problems() const override { return data_.size(0); }
  int64_t dim() const override { return model_->description().latent; }
  at::TensorOptions options() const override { return data_.options(); }
  /// As dear as `evaluate` where no fused evaluator is in use: other models know both or neither.
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  /// Where the model has them. Curvatures stay those of float32.
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override;
  bool can_select() const override { return true; }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;

  /// Gauss-Newton, P + J^T W J: J = d output / dz by central differences, W the likelihood's Fisher
  /// information, P minus the prior's Hessian by differences of its gradient. Without an output to
  /// differentiate, minus the Hessian of log p(x, z) by differences of its gradient. In more than
  /// 256 dimensions, the prior's precision and what 64 steps of Lanczos find of minus the Hessian
  /// of log p(x | z).
  at::Tensor curvature(const at::Tensor& z) const override;
  /// 2 D outputs of half an evaluation each, or 2 D evaluations; 128 in more than 256 dimensions.
  int64_t curvature_cost() const override;

  /// q(z | x), if there is an encoder.
  std::optional<AffineMap> amortised_base() const override;
  /// Widened: decoders that are no MLP have kinks, tails, and modes beside the one that was found.
  std::vector<std::string> base_candidates() const override;
  /// The normal of the prior's moments.
  AffineMap prior_base() const override;
  /// k times the latent that made each datum, if it is known: an exact draw of its posterior.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

  int64_t working_memory() const override;

 private:
  /// What computes z with such forces; null: the model's own functions.
  const FusedDecoder* fused_for(const at::Tensor& z, at::ScalarType forces) const;
  bool has_cheap_kernel(at::ScalarType dtype) const;
  /// `evaluate` on blocks of problems and particles, joined: between blocks a signal is seen.
  Evaluation in_blocks(
      const at::Tensor& z,
      const std::function<Evaluation(const at::Tensor& z, const at::Tensor& data)>& evaluate) const;
  /// Rows [N,D] with the problems that they belong to [N], in calls of at most `batch` rows; of
  /// fewer where a call fails. Throws Error kData, or std::bad_alloc, if one row cannot be
  /// computed.
  LatentModel::Density density(const at::Tensor& z, const at::Tensor& owner, int64_t batch,
                               at::ScalarType forces) const;
  Evaluation evaluated(const at::Tensor& z, at::ScalarType forces) const;
  at::Tensor labels_of(const at::Tensor& index) const;  // undefined without labels
  /// d output / dz of a problem [] at z [D]: [D,M].
  at::Tensor jacobian(const at::Tensor& z, const at::Tensor& problem) const;
  /// Of the output that `jacobian` is about, whatever the model's own output is: [rows, M].
  at::Tensor fisher_weights(const at::Tensor& z, const at::Tensor& problems) const;
  at::Tensor prior_precision(const at::Tensor& z) const;  // [P,D] -> [P,D,D]
  at::Tensor hessian(const at::Tensor& z) const;          // [P,D] -> [P,D,D]
  at::Tensor low_rank(const at::Tensor& z) const;         // [P,D] -> [P,D,D]

  std::shared_ptr<const LatentModel> model_;
  at::Tensor data_;
  at::Tensor latents_;
  at::Tensor labels_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: the model's own functions
  int64_t fused_rows_ = 1;                     // of a block
  at::ScalarType forces_ = at::kFloat;  // of products behind the gradient that `evaluate` gives
};

}  // namespace crais
