/// @file
/// A named density given by one formula, with its gradient by autograd.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <utility>

#include "targets/replicated.h"

namespace crais {

/// Replicates of a density that maps float64 or float32 tensors z [...,D] to log gamma [...], nats.
///
///     crais::ReplicatedFunction ring(options, 2, {}, [](const at::Tensor& z) {
///       return -0.5 * (z.norm(2, -1) - 3).square();
///     });
class ReplicatedFunction : public Replicated {
 public:
  using LogDensity = std::function<at::Tensor(const at::Tensor& z)>;

  ReplicatedFunction(const TargetOptions& options, int64_t dim,
                     std::optional<double> log_normalizer, LogDensity log_density)
      : Replicated(options, dim, log_normalizer), log_density_(std::move(log_density)) {}

  at::Tensor log_density(const at::Tensor& z) const override { return log_density_(z); }

 private:
  LogDensity log_density_;
};

}  // namespace crais
