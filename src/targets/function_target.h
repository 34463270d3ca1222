/// @file
/// A density given as a function.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/target.h"

namespace crais {

/// The problems of a FunctionTarget and their tensors.
struct FunctionTargetOptions {
  int64_t num_problems = 1;
  int64_t dim = 1;
  at::TensorOptions tensors = at::kDouble;  ///< dtype and device of particles
  at::Tensor starts = {};                   ///< [S,D]: see Traits
  at::Tensor draws = {};                    ///< [C,N,D]: of C chains that somebody else ran
  bool has_prior = false;                   ///< see Traits
};

/// Densities computed by a function of ATen or LibTorch operations. The gradient comes from
/// autograd. Several threads may call the function at once: it must be thread-safe.
///
/// The first half of each chain of `draws` becomes Traits::draws. The second half counts as exact
/// draws: each problem has a stretch of it for itself, of all chains.
///
///     crais::FunctionTarget normal({.dim = 2}, [](const at::Tensor& z) {
///       return -0.5 * z.square().sum(-1);                            // [P,K,D] -> [P,K]
///     });
///     crais::Result r = crais::estimate_log_normalizer(normal, {.seed = 1});
class FunctionTarget : public Target {
 public:
  /// log gamma [P,K], nats, at z [P,K,D]. One call evaluates every problem.
  using LogDensity = std::function<at::Tensor(const at::Tensor& z)>;
  /// log gamma [Q,K], nats, of the problems at `index` [Q] int64, at z [Q,K,D]. Such a target can
  /// be divided into chunks for threads.
  using IndexedLogDensity = std::function<at::Tensor(const at::Tensor& z, const at::Tensor& index)>;

  FunctionTarget(const FunctionTargetOptions& options, LogDensity log_density);
  FunctionTarget(const FunctionTargetOptions& options, IndexedLogDensity log_density);

  int64_t num_problems() const override { return index_.size(0); }
  int64_t dim() const override { return dim_; }
  /// Throws Error kArgument if the function does not return [P,K].
  at::Tensor log_density(const at::Tensor& z) const override;
  std::shared_ptr<const Target> select(const at::Tensor& index) const override;
  /// Every draw of a problem once, in random order, before one comes again.
  std::optional<at::Tensor> exact_sample(int64_t k, at::Generator& rng) const override;

 private:
  IndexedLogDensity log_density_;
  at::Tensor index_;  // [P] int64
  at::Tensor draws_;  // [P,M,D] of all problems; undefined: none
  int64_t dim_;
};

}  // namespace crais
