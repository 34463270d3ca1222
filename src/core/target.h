// What is integrated: an unnormalised density per problem.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/registry.h"

namespace crais {

/// log gamma(z) and its gradient for a batch of particles.
struct Evaluation {
  at::Tensor log_density;  // [P,K], nats
  at::Tensor grad;         // [P,K,D]
};

/// P unnormalised densities gamma_p(z) on R^D. Immutable after construction, so that threads share
/// it.
///
/// A physicist's target needs `num_problems`, `dim` and `log_density`, written with ATen
/// operations; the gradient then comes from autograd.
class Target {
 public:
  virtual ~Target() = default;

  virtual int64_t num_problems() const = 0;
  virtual int64_t dim() const = 0;

  /// z [P,K,D] -> log gamma [P,K], nats.
  virtual at::Tensor log_density(const at::Tensor& z) const = 0;

  /// Value and gradient together, the cost unit of the library. Default: autograd of log_density.
  virtual Evaluation evaluate(const at::Tensor& z) const;

  /// [P] nats, where it is known.
  virtual std::optional<at::Tensor> true_log_normalizer() const { return {}; }

  /// [P,k,D] independent draws of gamma / Z, where there is a way.
  virtual std::optional<at::Tensor> exact_sample(int64_t /*k*/, at::Generator& /*rng*/) const {
    return {};
  }
};

/// What every registered target is told.
struct TargetOptions {
  int64_t num_problems = 1;  // replicates of the same density
  at::TensorOptions tensors =
      at::kDouble;       // device and dtype of its constants, as of its particles
  std::string data_dir;  // where its files may lie; else $CRAIS_DATA, ./data
};

/// Densities with a name: "normal:128", "logistic-regression:pima,variance=5".
using TargetRegistry = Registry<Target, const TargetOptions&>;

}  // namespace crais
