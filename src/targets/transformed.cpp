#include "targets/transformed.h"

#include <utility>

namespace crais {

Transformed::Transformed(std::shared_ptr<const Target> target,
                         std::shared_ptr<const Bijection> bijection)
    : target_(std::move(target)), bijection_(std::move(bijection)) {
  TORCH_CHECK(bijection_->dim() == target_->dim(), "transformed: the target has dimension ",
              target_->dim(), ", its bijection ", bijection_->dim());
  const Traits& known = target_->traits();
  traits_.tensors = known.tensors;
  traits_.can_select = known.can_select;
  traits_.forgives_starts = true;
  traits_.is_replayable = known.is_replayable;
  traits_.forces_pay = known.forces_pay;
  traits_.log_normalizer = known.log_normalizer;
}

at::Tensor Transformed::log_density(const at::Tensor& u) const {
  return target_->log_density(bijection_->to_z(u)).to(at::kDouble) + bijection_->log_abs_det(u);
}

Evaluation Transformed::evaluate(const at::Tensor& u) const {
  const Evaluation evaluation = target_->evaluate(bijection_->to_z(u));
  return {evaluation.log_density.to(at::kDouble) + bijection_->log_abs_det(u),
          bijection_->pull_back(evaluation.grad, u)};
}

std::shared_ptr<const Target> Transformed::with_forces(at::ScalarType dtype) const {
  const auto forced = target_->with_forces(dtype);
  return forced ? std::make_shared<Transformed>(forced, bijection_) : nullptr;
}

std::shared_ptr<const Target> Transformed::select(const at::Tensor& index) const {
  return std::make_shared<Transformed>(target_->select(index), bijection_);
}

std::optional<at::Tensor> Transformed::exact_sample(int64_t k, at::Generator& rng) const {
  const auto draws = target_->exact_sample(k, rng);
  if (!draws) return {};
  return bijection_->to_u(*draws);
}

std::shared_ptr<const Target> transformed(std::shared_ptr<const Target> target,
                                          const std::shared_ptr<const Bijection>& bijection) {
  if (!bijection) return target;
  return std::make_shared<Transformed>(std::move(target), bijection);
}

}  // namespace crais
