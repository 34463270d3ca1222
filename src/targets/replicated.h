// P replicates of one density: what most named targets are.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "core/target.h"

namespace crais {

/// Every problem is the same density on R^D, so `log_density` broadcasts over problems.
class Replicated : public Target {
 public:
  /// log_normalizer: nats, where it is known.
  Replicated(const TargetOptions& options, int64_t dim, std::optional<double> log_normalizer)
      : num_problems_(options.num_problems),
        dim_(dim),
        tensors_(options.tensors),
        log_normalizer_(log_normalizer) {}

  int64_t num_problems() const override { return num_problems_; }
  int64_t dim() const override { return dim_; }

  std::optional<at::Tensor> true_log_normalizer() const override {
    if (!log_normalizer_) return {};
    return at::full({num_problems_}, *log_normalizer_, tensors_.dtype(at::kDouble));
  }

 protected:
  /// Device and dtype of particles.
  const at::TensorOptions& tensors() const { return tensors_; }

  /// An empty [P,k,D] to draw into.
  at::Tensor empty(int64_t k) const { return at::empty({num_problems_, k, dim_}, tensors_); }

 private:
  int64_t num_problems_;
  int64_t dim_;
  at::TensorOptions tensors_;
  std::optional<double> log_normalizer_;
};

}  // namespace crais
