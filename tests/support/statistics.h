// z-scores across replicate problems.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

namespace crais::testing {

/// (mean - truth) / standard error of the mean, over the first dimension: [R, ...] -> [...].
inline at::Tensor z_scores(const at::Tensor& replicates, const at::Tensor& truth) {
  const double root = std::sqrt(static_cast<double>(replicates.size(0)));
  return (replicates.mean(0) - truth) / (replicates.std(0, /*unbiased=*/true) / root);
}

inline double z_score(const at::Tensor& replicates, double truth) {
  return z_scores(replicates, at::full({}, truth, at::kDouble)).item<double>();
}

inline double std_error(const at::Tensor& replicates) {
  return replicates.std(0, true).item<double>() /
         std::sqrt(static_cast<double>(replicates.size(0)));
}

/// The largest |difference|; NaN counts as infinitely far.
inline double max_abs_diff(const at::Tensor& a, const at::Tensor& b) {
  return at::nan_to_num((a - b).abs(), INFINITY).max().item<double>();
}

}  // namespace crais::testing
