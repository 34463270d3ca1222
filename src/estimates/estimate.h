/// @file
/// Estimates with error bars, from log-weights.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "samplers/resampling.h"

namespace crais {

/// The relation of an estimate's mean to the truth.
enum class Bound { kLower, kUpper, kEstimate };
std::string to_string(Bound bound);

/// Estimates of P problems, [P] float64 each.
///
///     crais::Estimate e = crais::log_normalizer(run.log_w, run.genealogy);
///     double nats = e.value[0].item<double>(), error = e.std_error[0].item<double>();
struct Estimate {
  at::Tensor value;      // nats
  at::Tensor std_error;  // Monte Carlo error, nats
  at::Tensor bias;       // expected bias, nats; NaN: unknown
  at::Tensor ess;        // fraction, in [1/K, 1]
  at::Tensor pareto_k;   // of the tail of the weights; NaN if the weights are too few
};

/// Estimates that should not be trusted, [P] bool each. suspect_error: the standard error is above
/// 0.5 nats (then few effective particles remain, and neither error nor bias is known).
/// suspect_tail: the tail of the weights is too heavy.
at::Tensor suspect_error(const Estimate& estimate);
at::Tensor suspect_tail(const Estimate& estimate);

/// log of the sum of all weights without weight k, minus log of the sum of all, from the shares
/// [P,K].
at::Tensor log_rest(const at::Tensor& shares);
constexpr double kLeastRest = 1e-16;  // of a sum without some shares: the resolution of double

/// The jackknife variance [P] of a statistic, from its values [P,K] with each chain left out.
at::Tensor jackknife_variance(const at::Tensor& left_out);

/// log Z-hat = log_mean_exp(log w). E[log Z-hat] <= log Z (Jensen): a lower bound on average.
///
/// std_error comes from the jackknife: with S_k the share of particle k in the sum of weights,
///   variance = (K - 1) / K sum_k (l_k - mean l)^2,  l_k = log(1 - S_k),      [Tukey 1958]
/// and bias = -variance / 2. The delta method, sd(w) / (mean(w) sqrt(K)), is the limit for small
/// shares; with sixteen uneven shares it is a tenth too small.
/// After resampling, common ancestors make weights dependent. S_k is then the share of the
/// descendants of starting particle k: the jackknife leaves out families. If n resamplings drew
/// each ancestor independently, the jackknife also counts families that arose by chance; then
///   variance = -log(1 - v),  v = 1 - (K / (K - 1))^(n + 1) (1 - sum_k S_k^2),
/// with v the relative variance of Zhat [Lee & Whiteley 2018], as for a log-normal Zhat, but at
/// least the jackknife's variance of the weights since the last resampling.
///
/// @param log_w      [P,K] float64, K >= 1 (K = 1: std_error is NaN).
/// @param genealogy  the descent of SMC particles; absent: particles are independent.
Estimate log_normalizer(const at::Tensor& log_w, const Genealogy& genealogy = {});

/// log Z from weights with E[w] = 1/Z: -log_mean_exp(log w), an upper bound on average. Chains that
/// share their exact draw are not independent: the error is conditional on the draw.
Estimate reverse_log_normalizer(const at::Tensor& log_w);

/// mean(log w), nats: the evidence lower bound of the base.
Estimate evidence_lower_bound(const at::Tensor& log_w);

/// sd / sqrt(N) of N independent numbers; NaN for fewer than two.
double std_error_of_mean(const at::Tensor& values);

/// Standard error of the mean of N independent estimates of one number: that of their spread, or,
/// where it is larger, that of their own standard errors. The latter alone for N = 1.
double std_error_of_replicates(const at::Tensor& values, const at::Tensor& std_errors);

/// The half-width of the 95% interval of the mean of `count` numbers, in standard errors: Student's
/// t, 1.96 in the limit. NaN for fewer than two.
double interval_width(int64_t count);

/// A mean over images with two separate errors.
struct MeanEstimate {
  double mean = 0.0;                   // nats
  double data_std_error = 0.0;         // from the choice of images: sd(values) / sqrt(N)
  double monte_carlo_std_error = 0.0;  // from the chains: sqrt(sum std_error^2) / N
};

/// @param value, std_error  [R,N]: R independent repeats of N images. With R >= 2 the Monte Carlo
/// error comes from the spread of the R means, otherwise from `std_error`.
MeanEstimate mean_over_images(const at::Tensor& value, const at::Tensor& std_error);

/// -log p(x) in bits per dimension.
double bits_per_dim(double log_likelihood, int64_t num_dims);

/// The shape k of a generalised Pareto distribution fitted to the largest weights of each problem.
/// If k is below 0.5, the variance of the weights is finite. If k is above 0.7, no practical number
/// of draws makes the estimate or its standard error reliable.       [Vehtari, Simpson, Gelman, Yao
/// & Gabry 2024]
///
/// The tail is the largest min(K/5, 3 sqrt(K)) weights. The fit is the quasi-Bayesian fit of Zhang
/// & Stephens (2009), shrunk towards k = 0.5 with the weight of ten observations.
///
/// @param log_w  [P,K] float64, nats.
/// @return       [P] float64; NaN if the tail holds fewer than 20 weights (K < 96), -inf if
///               all its weights are equal but for rounding.
/// Cost: O(PK log K), no target evaluations.
at::Tensor pareto_k(const at::Tensor& log_w);

/// The tail is too heavy above this k.
constexpr double kHeavyTail = 0.7;

}  // namespace crais
