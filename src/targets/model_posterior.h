/// @file
/// The posterior of an exported model's latent, unnormalised: its normaliser is p(x).
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "models/latent_model.h"

namespace crais {

/// gamma_p(z) = p(x_p, z) of P data under a LatentModel.
///
///     auto model = crais::read_model_package("vae.pt2");
///     crais::ModelPosterior target(model, images);  // [P, ...] as the likelihood takes them
///     crais::Result r = crais::estimate_log_normalizer(target);
class ModelPosterior : public Target {
 public:
  /// `data` [P, ...] float32. `latents` [P,D], where the data were simulated, are what they were
  /// simulated from; else undefined. `labels` [P, ...] are those of a conditional model p(x | y).
  ModelPosterior(std::shared_ptr<const LatentModel> model, at::Tensor data, at::Tensor latents = {},
                 at::Tensor labels = {});

  int64_t num_problems() const override { return data_.size(0); }
  int64_t dim() const override { return model_->description().latent; }
  at::TensorOptions options() const override { return data_.options(); }
  /// As dear as `evaluate`: an exported model knows both or neither.
  at::Tensor log_density(const at::Tensor& z) const override { return evaluate(z).log_density; }
  Evaluation evaluate(const at::Tensor& z) const override;
  /// Where the model has them. Curvatures stay those of float32.
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override { return model_->forces_pay(dtype); }
  /// Throws Error kArgument: an exported model has no second derivatives.
  Evaluation evaluate_with_graph(const at::Tensor& z) const override;
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
  /// Rows [N,D] with the problems that they belong to [N], in calls of at most `batch` rows; of
  /// fewer where a call fails. Throws Error kData, or std::bad_alloc, if one row cannot be
  /// computed.
  LatentModel::Density density(const at::Tensor& z, const at::Tensor& owner, int64_t batch,
                               at::ScalarType forces) const;
  Evaluation evaluated(const at::Tensor& z, at::ScalarType forces) const;
  at::Tensor labels_of(const at::Tensor& index) const;                  // undefined without labels
  at::Tensor gauss_newton(int64_t problem, const at::Tensor& z) const;  // [D] -> [D,D]
  at::Tensor prior_precision(const at::Tensor& z) const;                // [P,D] -> [P,D,D]
  at::Tensor hessian(const at::Tensor& z) const;                        // [P,D] -> [P,D,D]
  at::Tensor low_rank(const at::Tensor& z) const;                       // [P,D] -> [P,D,D]

  std::shared_ptr<const LatentModel> model_;
  at::Tensor data_;
  at::Tensor latents_;
  at::Tensor labels_;
  at::ScalarType forces_ = at::kFloat;  // of products behind the gradient that `evaluate` gives
};

}  // namespace crais
