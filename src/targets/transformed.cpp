#include "targets/transformed.h"

#include <cmath>
#include <utility>

namespace crais {

Transformed::Transformed(std::shared_ptr<const Target> target,
                         std::shared_ptr<const Bijection> bijection)
    : target_(std::move(target)), bijection_(std::move(bijection)) {
  TORCH_CHECK(bijection_->dim() == target_->dim(), "transformed: the target has dimension ",
              target_->dim(), ", its bijection ", bijection_->dim());
}

/// A move that goes astray may have a z that is no number, where the density is 0.
struct Transformed::Place {
  at::Tensor z, is_finite;  // [P,K,D] with 0 in place of such a z, [P,K] bool

  Place(const Bijection& bijection, const at::Tensor& u) : z(bijection.to_z(u)) {
    is_finite = z.isfinite().all(-1);
    z = at::where(is_finite.unsqueeze(-1), z, at::zeros_like(z));
  }
};

at::Tensor Transformed::log_density(const at::Tensor& u) const {
  const Place place(*bijection_, u);
  const at::Tensor here = target_->log_density(place.z).to(at::kDouble);
  return (here + bijection_->log_abs_det(u)).masked_fill(~place.is_finite, -INFINITY);
}

Evaluation Transformed::evaluate(const at::Tensor& u) const {
  const Place place(*bijection_, u);
  const Evaluation here = target_->evaluate(place.z);
  const at::Tensor log_density = here.log_density.to(at::kDouble) + bijection_->log_abs_det(u);
  return {log_density.masked_fill(~place.is_finite, -INFINITY),
          bijection_->pull_back(here.grad, u).masked_fill(~place.is_finite.unsqueeze(-1), 0)};
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
