// The prior p(z) of a model as a target of its own, to check that it integrates to 1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/target.h"
#include "models/latent_model.h"

namespace crais {

/// Replicates of log p(z), computed by the model's function "prior". No decoder runs.
class ModelPrior : public Target {
 public:
  /// Requires a model with the function "prior".
  ModelPrior(std::shared_ptr<const LatentModel> model, const at::TensorOptions& tensors,
             int64_t num_problems);

  int64_t num_problems() const override { return num_problems_; }
  int64_t dim() const override { return model_->description().latent; }
  at::Tensor log_density(const at::Tensor& z) const override { return evaluate(z).log_density; }
  Evaluation evaluate(const at::Tensor& z) const override;
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  /// The curvature by central differences of the gradient.
  at::Tensor curvature(const at::Tensor& z) const override;

 private:
  std::shared_ptr<const LatentModel> model_;
  int64_t num_problems_;
};

/// The normal with the moments of a model's prior; nothing for N(0, I).
std::optional<AffineMap> normal_of_prior(const LatentModel& model,
                                         const at::TensorOptions& tensors);

}  // namespace crais
