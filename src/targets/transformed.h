/// @file
/// A density in coordinates u, with z = T(u).
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "core/bijection.h"
#include "core/target.h"

namespace crais {

/// gamma_p(T(u)) |det dT/du|, whose normaliser is that of gamma_p. Tails of T may reach farther
/// than any density is meant for, so starts are forgiven. Cost: as for the target.
class Transformed : public Target {
 public:
  /// `bijection` has the device and dtype of the target.
  Transformed(std::shared_ptr<const Target> target, std::shared_ptr<const Bijection> bijection);

  int64_t num_problems() const override { return target_->num_problems(); }
  int64_t dim() const override { return target_->dim(); }
  at::Tensor log_density(const at::Tensor& u) const override;
  Evaluation evaluate(const at::Tensor& u) const override;
  std::shared_ptr<const Target> with_forces(at::ScalarType dtype) const override;
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

 private:
  std::shared_ptr<const Target> target_;
  std::shared_ptr<const Bijection> bijection_;
};

/// The density in the coordinates of `bijection`; the target itself if there is none.
std::shared_ptr<const Target> transformed(std::shared_ptr<const Target> target,
                                          const std::shared_ptr<const Bijection>& bijection);

}  // namespace crais
