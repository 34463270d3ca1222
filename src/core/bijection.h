/// @file
/// z = T(u): nonlinear changes of variables in which densities become nearly normal.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>

namespace crais {

/// A bijection of R^D, the same for all problems. Immutable.
class Bijection {
 public:
  virtual ~Bijection() = default;

  virtual int64_t dim() const = 0;
  /// Maps u [...,D] to z [...,D].
  virtual at::Tensor to_z(const at::Tensor& u) const = 0;
  /// Maps z [...,D] to u [...,D].
  virtual at::Tensor to_u(const at::Tensor& z) const = 0;
  /// log|det dz/du| at u [...,D]: [...] float64.
  virtual at::Tensor log_abs_det(const at::Tensor& u) const = 0;
  /// Turns the gradient of f with respect to z into that of f(T(u)) + log|det dz/du| with respect
  /// to u.
  virtual at::Tensor pull_back(const at::Tensor& grad_z, const at::Tensor& u) const = 0;

  /// This bijection on the device and in the dtype of `options`.
  virtual std::shared_ptr<const Bijection> to(const at::TensorOptions& options) const = 0;
};

/// z = outer(inner(u)).
class Composition : public Bijection {
 public:
  Composition(std::shared_ptr<const Bijection> outer, std::shared_ptr<const Bijection> inner)
      : outer_(std::move(outer)), inner_(std::move(inner)) {}

  int64_t dim() const override { return outer_->dim(); }
  at::Tensor to_z(const at::Tensor& u) const override { return outer_->to_z(inner_->to_z(u)); }
  at::Tensor to_u(const at::Tensor& z) const override { return inner_->to_u(outer_->to_u(z)); }
  at::Tensor log_abs_det(const at::Tensor& u) const override {
    return outer_->log_abs_det(inner_->to_z(u)) + inner_->log_abs_det(u);
  }
  at::Tensor pull_back(const at::Tensor& grad_z, const at::Tensor& u) const override {
    return inner_->pull_back(outer_->pull_back(grad_z, inner_->to_z(u)), u);
  }
  std::shared_ptr<const Bijection> to(const at::TensorOptions& options) const override {
    return std::make_shared<Composition>(outer_->to(options), inner_->to(options));
  }

 private:
  std::shared_ptr<const Bijection> outer_, inner_;
};

}  // namespace crais
