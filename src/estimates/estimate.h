/// @file
/// From log-weights to numbers with error bars.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "samplers/resampling.h"

namespace crais {

/// What an estimate is on average, relative to the truth.
enum class Bound { kLower, kUpper, kEstimate };
std::string to_string(Bound bound);

/// Per problem, [P] float64 each.
///
///     crais::Estimate e = crais::log_normalizer(run.log_w, run.genealogy);
///     double nats = e.value[0].item<double>(), error = e.std_error[0].item<double>();
struct Estimate {
  at::Tensor value;      // nats
  at::Tensor std_error;  // Monte Carlo, nats
  at::Tensor bias;       // to be expected of it, nats; NaN: unknown
  at::Tensor ess;        // fraction, in [1/K, 1]
  at::Tensor pareto_k;   // of the tail of the weights; NaN where they are too few
};

/// Estimates not to be trusted, [P] bool each: those whose standard error is above 0.5 nats (a
/// handful of effective particles: neither it nor the bias is known then),
/// and those whose weights have too heavy a tail.
at::Tensor suspect_error(const Estimate& estimate);
at::Tensor suspect_tail(const Estimate& estimate);

/// log of the sum of all weights but one's, less that of all, from the shares [P,K] of each.
at::Tensor log_rest(const at::Tensor& shares);
constexpr double kLeastRest = 1e-16;  // of a sum without some of its shares: their resolution

/// The jackknife's variance [P] of a statistic, from its values [P,K] with each chain left out.
at::Tensor jackknife_variance(const at::Tensor& left_out);

/// log Z-hat = log_mean_exp(log w). E[log Z-hat] <= log Z (Jensen): a lower bound on average.
///
/// std_error by the jackknife: with S_k the share of particle k in the sum of weights,
///   variance = (K - 1) / K sum_k (l_k - mean l)^2,  l_k = log(1 - S_k),      [Tukey 1958]
/// and bias = -variance / 2. The delta method, sd(w) / (mean(w) sqrt(K)), is its limit for small
/// shares; from sixteen uneven ones it promises a tenth too little.
/// After resampling weights depend on each other through common ancestors, and S_k is the share of
/// the descendants of starting particle k: the jackknife leaves out families. Where n resamplings
/// drew each ancestor for itself, that finds families that chance alone has made; there
///   variance = -log(1 - v),  v = 1 - (K / (K - 1))^(n + 1) (1 - sum_k S_k^2),
/// v the relative variance of Zhat [Lee & Whiteley 2018], as that of a log-normal Zhat; not less
/// than the jackknife's of the weights since the last resampling.
///
/// @param log_w      [P,K] float64, K >= 1 (K = 1: std_error is NaN).
/// @param genealogy  of SMC; absent: particles are independent.
Estimate log_normalizer(const at::Tensor& log_w, const Genealogy& genealogy = {});

/// The same from weights with E[w] = 1/Z: -log_mean_exp(log w), an upper bound on average.
/// Chains that share their exact draw are not independent: the error is of the chains given it.
Estimate reverse_log_normalizer(const at::Tensor& log_w);

/// mean(log w): the evidence lower bound of the base.
Estimate evidence_lower_bound(const at::Tensor& log_w);

/// sd / sqrt(N) of N independent numbers; NaN of fewer than two.
double std_error_of_mean(const at::Tensor& values);

/// How many standard errors reach from the mean of `count` numbers to the end of its 95% interval:
/// Student's t, 1.96 of many. NaN of fewer than two.
double interval_width(int64_t count);

/// A mean over images, its two errors apart.
struct MeanEstimate {
  double mean = 0.0;            // nats
  double data_std_error = 0.0;  // of having these images and not others: sd(values) / sqrt(N)
  double monte_carlo_std_error = 0.0;  // of these chains: sqrt(sum std_error^2) / N
};

/// @param value, std_error  [R,N]: R independent repeats of N images. With R >= 2 the Monte Carlo
///                          error comes from the spread of the R means, otherwise from `std_error`.
MeanEstimate mean_over_images(const at::Tensor& value, const at::Tensor& std_error);

/// -log p(x) in bits per dimension.
double bits_per_dim(double log_likelihood, int64_t num_dims);

/// The shape k of a generalised Pareto distribution fitted to the largest weights of each problem.
/// Below 0.5 their variance is finite, above 0.7 no practical number of draws makes the estimate
/// or its standard error reliable.                [Vehtari, Simpson, Gelman, Yao & Gabry 2024]
///
/// The tail is the largest min(K/5, 3 sqrt(K)) weights. The fit is the quasi-Bayesian one of Zhang
/// & Stephens (2009), drawn towards k = 0.5 with the weight of ten observations.
///
/// @param log_w  [P,K] float64, nats.
/// @return       [P] float64; NaN where the tail holds fewer than 20 weights (K < 96), -inf where
///               all its weights are equal but for rounding.
/// Cost: O(PK log K), no target evaluations.
at::Tensor pareto_k(const at::Tensor& log_w);

/// Above this the tail is too heavy.
constexpr double kHeavyTail = 0.7;

}  // namespace crais
