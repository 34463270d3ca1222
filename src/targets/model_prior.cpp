#include "targets/model_prior.h"

#include <utility>
#include <vector>

#include "util/interrupt.h"

namespace crais {

ModelPrior::ModelPrior(std::shared_ptr<const LatentModel> model, const at::TensorOptions& tensors,
                       int64_t num_problems)
    : model_(std::move(model)), num_problems_(num_problems) {
  traits_.tensors = tensors;
  traits_.can_select = true;
  traits_.curvature_cost = 2 * dim();
  traits_.prior = normal_of_prior(*model_, tensors);
}

Evaluation ModelPrior::evaluate(const at::Tensor& z) const {
  std::vector<at::Tensor> values, gradients;
  for (const at::Tensor& rows : z.reshape({-1, dim()}).split(model_->batch())) {
    stop_if_interrupted();
    const LatentModel::Density density = *model_->prior(rows);
    values.push_back(density.value);
    gradients.push_back(density.grad);
  }
  return {at::cat(values).view({z.size(0), z.size(1)}), at::cat(gradients).view(z.sizes())};
}

std::shared_ptr<const Target> ModelPrior::select(const at::Tensor& index) const {
  return std::make_shared<ModelPrior>(model_, options(), index.numel());
}

at::Tensor ModelPrior::curvature(const at::Tensor& z) const {
  constexpr double kStepOfDifference = 1e-2;
  const at::Tensor steps = kStepOfDifference * at::eye(dim(), z.options());
  const auto halves = evaluate(z.unsqueeze(1) + at::cat({steps, -steps})).grad.chunk(2, 1);
  const at::Tensor hessian = (halves[0] - halves[1]) / (2 * kStepOfDifference);
  return -0.5 * (hessian + hessian.transpose(1, 2));
}

std::optional<AffineMap> normal_of_prior(const LatentModel& model,
                                         const at::TensorOptions& tensors) {
  const auto moments = model.prior_moments();
  if (!moments) return {};
  return AffineMap(moments->loc.to(tensors).unsqueeze(0),
                   moments->scale_tril.to(tensors).unsqueeze(0));
}

}  // namespace crais
