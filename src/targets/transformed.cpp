#include "targets/transformed.h"

#include <cmath>
#include <utility>

namespace crais {
namespace {

/// True where a density is no number, if that is at fewer than one point in a hundred: [P,K] bool.
/// The tails of T may reach farther than any density is meant for. It counts as 0 there. More of
/// such points are left as they are, for the samplers to refuse or to count.
at::Tensor rarely_undefined(const at::Tensor& log_density) {
  constexpr double kFew = 1e-2;
  const at::Tensor undefined = log_density.isnan();
  return undefined & (undefined.to(at::kDouble).mean() < kFew);
}

}  // namespace

Transformed::Transformed(std::shared_ptr<const Target> target,
                         std::shared_ptr<const Bijection> bijection)
    : target_(std::move(target)), bijection_(std::move(bijection)) {
  TORCH_CHECK(bijection_->dim() == target_->dim(), "transformed: the target has dimension ",
              target_->dim(), ", its bijection ", bijection_->dim());
}

at::Tensor Transformed::log_density(const at::Tensor& u) const {
  const at::Tensor here =
      target_->log_density(bijection_->to_z(u)).to(at::kDouble) + bijection_->log_abs_det(u);
  return here.masked_fill(rarely_undefined(here), -INFINITY);
}

Evaluation Transformed::evaluate(const at::Tensor& u) const {
  const Evaluation evaluation = target_->evaluate(bijection_->to_z(u));
  const at::Tensor here = evaluation.log_density.to(at::kDouble) + bijection_->log_abs_det(u);
  const at::Tensor nothing = rarely_undefined(here);
  return {here.masked_fill(nothing, -INFINITY),
          bijection_->pull_back(evaluation.grad, u).masked_fill(nothing.unsqueeze(-1), 0)};
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
