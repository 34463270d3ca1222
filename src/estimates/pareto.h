// When importance sampling lies: the tail of its weights.
#pragma once

#include <ATen/ATen.h>

namespace crais {

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
