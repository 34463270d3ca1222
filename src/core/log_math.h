/// @file
/// Sums of weights that are given as logarithms.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// log((1/K) sum_k exp(x_pk)) over the last dimension. An entry of -inf counts as zero; if all are
/// -inf, the result is -inf.
at::Tensor log_mean_exp(const at::Tensor& x);

/// Normalised log-weights log w_pk - log sum_k w_pk. Uniform if every weight is zero.
at::Tensor log_normalise(const at::Tensor& log_w);

/// log of the variance of exp(h) under normalised weights, without forming exp(h): log V = log
/// sum_k W_k |e^{h_k} - e^m|^2, m = log sum_k W_k e^{h_k}, each difference as max(h_k, m) + log(1 -
/// e^{-|h_k - m|}). Exact to rounding at every scale of h and W.
///
/// @param h      [P,K] float64, finite or -inf.
/// @param log_w  [P,K] normalised log-weights.
/// @return       [P]; -inf for a constant h.
at::Tensor log_variance_of_exp(const at::Tensor& h, const at::Tensor& log_w);

/// Effective-sample-size (ESS) fraction of unnormalised weights, for each problem.
///
/// ess_p = (sum_k w_pk)^2 / (K sum_k w_pk^2)                 [Kong 1992]
///
/// @param log_w  [P,K] float64, nats; -inf allowed.
/// @return       [P] float64 in [1/K, 1]; 0 if every weight is zero.
/// @throws c10::Error if log_w is not 2-d or holds NaN or +inf.
/// Cost: O(PK), no target evaluations.
at::Tensor ess(const at::Tensor& log_w);

/// Conditional ESS fraction of an increment on top of weights.
///
/// cess_p = (sum_k W_pk v_pk)^2 / sum_k W_pk v_pk^2,  W normalised    [Zhou, Johansen & Aston 2016]
///
/// @param log_w      [P,K] float64 weights before the increment, normalised (log_normalise).
/// @param increment  [P,K] float64 log v.
/// @return           [P] float64 in [0, 1]; equals ess(increment) for uniform weights.
at::Tensor cess_normalised(const at::Tensor& log_w, const at::Tensor& increment);

}  // namespace crais
