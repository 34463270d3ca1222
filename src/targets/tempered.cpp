#include "targets/tempered.h"

#include <cmath>
#include <utility>

#include "util/error.h"

namespace crais {

Tempered::Tempered(std::shared_ptr<const Target> target, const Options& options)
    : target_(std::move(target)), options_(options) {
  if (!(options_.power > 0)) throw argument_error("the `power` of a likelihood must be above 0");
  const AffineMap prior = target_->prior_base().select(
      at::zeros({1}, at::device(target_->options().device()).dtype(at::kLong)));
  loc_ = prior.loc()[0];
  precision_ = at::cholesky_inverse(prior.matrix()[0]);
  log_scale_ = prior.log_abs_det()[0].item<double>() +
               0.5 * static_cast<double>(loc_.size(0)) * std::log(2.0 * M_PI);
}

at::Tensor Tempered::log_density(const at::Tensor& z) const {
  const at::Tensor apart = z - loc_;
  const at::Tensor prior =
      -0.5 * (at::matmul(apart, precision_) * apart).sum(-1).to(at::kDouble) - log_scale_;
  return (1 - options_.power) * prior + options_.power * target_->log_density(z) + options_.offset;
}

Evaluation Tempered::evaluate(const at::Tensor& z) const {
  const at::Tensor apart = z - loc_, pulled = at::matmul(apart, precision_);
  const at::Tensor prior = -0.5 * (pulled * apart).sum(-1).to(at::kDouble) - log_scale_;
  const Evaluation evaluation = target_->evaluate(z);
  return {(1 - options_.power) * prior + options_.power * evaluation.log_density + options_.offset,
          options_.power * evaluation.grad - (1 - options_.power) * pulled};
}

std::shared_ptr<const Target> Tempered::with_forces(at::ScalarType dtype) const {
  const auto forced = target_->with_forces(dtype);
  return forced ? std::make_shared<Tempered>(forced, options_) : nullptr;
}

std::shared_ptr<const Target> Tempered::select(const at::Tensor& index) const {
  return std::make_shared<Tempered>(target_->select(index), options_);
}

std::optional<at::Tensor> Tempered::exact_sample(int64_t k, at::Generator& rng) const {
  if (!options_.keeps_draws) return {};
  return target_->exact_sample(k, rng);
}

}  // namespace crais
