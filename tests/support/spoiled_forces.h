// Targets with wrong gradients and right densities: any function of z may move particles.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <memory>

#include "core/target.h"

namespace crais::testing {

enum class Spoiling {
  kNone,
  kRounded,   // to bfloat16
  kWeak,      // three quarters of it
  kConstant,  // one vector everywhere
  kFlipped,   // the other way
  kAnothers,  // that of another density: as of another image
  kRandom,    // a fixed field that knows nothing of the density
  kChanging,  // broken: another field at each call
};

class SpoiledForces : public Target {
 public:
  SpoiledForces(std::shared_ptr<const Target> inner, Spoiling spoiling, double off = 0.0)
      : inner_(std::move(inner)), spoiling_(spoiling), off_(off) {
    traits_.tensors = inner_->options();
  }

  int64_t num_problems() const override { return inner_->num_problems(); }
  int64_t dim() const override { return inner_->dim(); }
  at::Tensor log_density(const at::Tensor& z) const override {
    return inner_->log_density(z) + off_;
  }
  Evaluation evaluate(const at::Tensor& z) const override {
    const Evaluation exact = inner_->evaluate(z);
    return {exact.log_density + off_, spoiled(z, exact.grad)};
  }

 private:
  at::Tensor spoiled(const at::Tensor& z, const at::Tensor& grad) const {
    switch (spoiling_) {
      case Spoiling::kNone:
        return grad;
      case Spoiling::kRounded:
        return grad.to(at::kBFloat16).to(grad.scalar_type());
      case Spoiling::kWeak:
        return 0.75 * grad;
      case Spoiling::kConstant:
        return at::full_like(grad, 0.8);
      case Spoiling::kFlipped:
        return -grad;
      case Spoiling::kAnothers:
        return inner_->evaluate(1.3 * z + 0.9).grad;
      case Spoiling::kRandom:
        return 1.5 * at::sin(7.0 * z.flip({-1}) + 0.3) + at::cos(5.0 * z);
      case Spoiling::kChanging:
        return grad * (calls_++ % 2 == 0 ? 8.0 : -1.0);
    }
    return grad;
  }

  std::shared_ptr<const Target> inner_;
  Spoiling spoiling_;
  double off_;  // added to log-densities, nats
  mutable std::atomic<int64_t> calls_{0};
};

}  // namespace crais::testing
