/// @file
/// A posterior whose likelihood is raised to a power.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "core/target.h"

namespace crais {

/// gamma_p(z) = p(z) p(x_p | z)^power exp(offset) of a target p(z) p(x_p | z). The prior is the
/// normal prior_base(), equal for all problems. This is the end of a rate-distortion curve at
/// `power`. With power = (s / t)^2 and the offset that normalises the noise density, normal noise
/// of standard deviation s becomes noise of standard deviation t.
///
///     crais::Tempered sharper(target, /*power=*/2.0);
class Tempered : public Target {
 public:
  struct Options {
    double power = 1.0;
    double offset = 0.0;       ///< nats
    bool keeps_draws = false;  ///< the target's exact draws are also draws of this density
  };
  /// Throws Error kArgument if the power is not above 0.
  Tempered(std::shared_ptr<const Target> target, const Options& options);

  int64_t num_problems() const override { return target_->num_problems(); }
  int64_t dim() const override { return target_->dim(); }
  at::TensorOptions options() const override { return target_->options(); }
  /// Cost: as for the target.
  at::Tensor log_density(const at::Tensor& z) const override;
  Evaluation evaluate(const at::Tensor& z) const override;
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override { return target_->forces_pay(dtype); }
  bool can_select() const override { return target_->can_select(); }
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  AffineMap prior_base() const override { return target_->prior_base(); }
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

 private:
  std::shared_ptr<const Target> target_;
  Options options_;
  at::Tensor loc_, precision_;  // of the prior: [D], [D,D]
  double log_scale_ = 0.0;      // log scale of the prior's density, nats
};

}  // namespace crais
