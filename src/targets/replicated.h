/// @file
/// P replicates of one density. Most named targets are replicates.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/target.h"

namespace crais {

/// Targets whose problems all have the same density on R^D: `log_density` broadcasts over problems.
///
///     class Ring : public crais::Replicated {
///      public:
///       explicit Ring(const crais::TargetOptions& options) : Replicated(options, 2, {}) {}
///       at::Tensor log_density(const at::Tensor& z) const override {
///         return -0.5 * (z.norm(2, -1) - 3).square();
///       }
///     };
class Replicated : public Target {
 public:
  /// log_normalizer is log Z in nats, if it is known.
  Replicated(const TargetOptions& options, int64_t dim, std::optional<double> log_normalizer)
      : num_problems_(options.num_problems), dim_(dim) {
    traits_.tensors = options.tensors;
    traits_.can_select = true;
    if (log_normalizer)
      traits_.log_normalizer = at::full({1}, *log_normalizer, options.tensors.dtype(at::kDouble));
  }

  int64_t num_problems() const override { return num_problems_; }
  int64_t dim() const override { return dim_; }

  /// As many replicates as `index` has entries, as a view of this target.
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;

  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override {
    return draw(at::empty({num_problems_, k, dim_}, options()), rng);
  }

 protected:
  /// Independent exact draws in the shape of `like` [P,k,D], if the density can be sampled.
  virtual std::optional<at::Tensor> draw(const at::Tensor& /*like*/, at::Generator& /*rng*/) const {
    return {};
  }

 private:
  class View;

  int64_t num_problems_;
  int64_t dim_;
};

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
