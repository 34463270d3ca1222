// From log-weights to numbers with error bars.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

namespace crais {

/// What an estimate is on average, relative to the truth.
enum class Bound { kLower, kUpper, kEstimate };
std::string to_string(Bound bound);

/// Per problem, [P] float64 each.
struct Estimate {
  at::Tensor value;      // nats
  at::Tensor std_error;  // Monte Carlo, nats
  at::Tensor ess;        // fraction, in [1/K, 1]
};

/// log Z-hat = log_mean_exp(log w). E[log Z-hat] <= log Z (Jensen): a lower bound on average.
///
/// std_error by the delta method, sd(w) / (mean(w) sqrt(K)) = sqrt((1/ess - 1) / (K - 1)); once the
/// ESS is a few particles it is too small, and the bound loose.
///
/// @param log_w  [P,K] float64, K >= 1 (K = 1: std_error is NaN).
Estimate log_normalizer(const at::Tensor& log_w);

/// mean(log w): the evidence lower bound of the base.
Estimate evidence_lower_bound(const at::Tensor& log_w);

/// A mean over images, its two errors apart.
struct MeanEstimate {
  double mean = 0.0;            // nats
  double data_std_error = 0.0;  // of having these images and not others: sd(values) / sqrt(N)
  double monte_carlo_std_error = 0.0;  // of these chains: sqrt(sum std_error^2) / N
};

/// @param value, std_error  [R,N]: R independent repeats of N images. With R >= 2 the Monte Carlo
/// error
///                          comes from the spread of the R means, otherwise from `std_error`.
MeanEstimate mean_over_images(const at::Tensor& value, const at::Tensor& std_error);

/// -log p(x) in bits per dimension.
double bits_per_dim(double log_likelihood, int64_t num_dims);

}  // namespace crais
