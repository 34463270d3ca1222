/// @file
/// Likelihoods under a uniform prior.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <optional>

#include "targets/replicated_function.h"

namespace crais {

/// log gamma(e) = log L(theta) + log N(e; 0, I), theta = low + (high - low) Phi(e). Its Z is the
/// evidence of log L [...,D] -> [...] under the uniform prior on [low, high]^dim.
inline std::unique_ptr<Target> under_uniform_prior(
    const TargetOptions& options, int64_t dim, double low, double high, std::optional<double> log_z,
    std::function<at::Tensor(const at::Tensor& theta)> log_likelihood) {
  return std::make_unique<ReplicatedFunction>(options, dim, log_z, [=](const at::Tensor& e) {
    const at::Tensor theta = low + (high - low) * at::special_ndtr(e);
    return log_likelihood(theta) + normal_log_density(e).sum(-1);
  });
}

}  // namespace crais
