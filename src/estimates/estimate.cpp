#include "estimates/estimate.h"

#include <cmath>

#include "core/log_math.h"
#include "estimates/pareto.h"

namespace crais {

std::string to_string(Bound bound) {
  switch (bound) {
    case Bound::kLower:
      return "lower bound";
    case Bound::kUpper:
      return "upper bound";
    case Bound::kEstimate:
      break;
  }
  return "estimate";
}

at::Tensor suspect_error(const Estimate& estimate) {
  constexpr double kLargeError = 0.5;  // nats
  return ~(estimate.std_error <= kLargeError) | ~estimate.value.isfinite();
}

at::Tensor suspect_tail(const Estimate& estimate) { return estimate.pareto_k > kHeavyTail; }

namespace {

constexpr double kLeastRest = 1e-16;  // of a sum without some of its shares: their resolution

/// Of log sum_k w_k from the shares S_k of the sum: how much it moves as each is left out.
at::Tensor jackknife_variance(const at::Tensor& shares) {
  const auto k = static_cast<double>(shares.size(1));
  const at::Tensor left_out = (1 - shares).clamp_min(kLeastRest).log();
  return (k - 1) / k * (left_out - left_out.mean(1, /*keepdim=*/true)).square().sum(1);
}

/// The same after `num_resamplings` of independent draws, from the shares of starting particles.
at::Tensor genealogical_variance(const at::Tensor& shares, const at::Tensor& num_resamplings) {
  const auto k = static_cast<double>(shares.size(1));
  const at::Tensor apart = (1 - shares.square().sum(-1)).clamp_min(kLeastRest);
  return -((1 + num_resamplings) * std::log1p(1 / (k - 1)) + apart.log()).clamp_max(0);
}

}  // namespace

Estimate log_normalizer(const at::Tensor& log_w, const Genealogy& genealogy) {
  const at::Tensor shares = log_normalise(log_w).exp();
  at::Tensor variance = jackknife_variance(shares);
  if (log_w.size(1) == 1) {
    variance = at::full_like(variance, NAN);
  } else if (genealogy.roots.defined()) {
    const at::Tensor inherited = at::zeros_like(shares).scatter_add(1, genealogy.roots, shares);
    if (!genealogy.independent_draws) {
      variance = jackknife_variance(inherited);
    } else {
      const at::Tensor since_start = genealogical_variance(inherited, genealogy.num_resamplings);
      variance =
          at::where(genealogy.num_resamplings > 0, at::maximum(variance, since_start), variance);
    }
  }
  return {log_mean_exp(log_w), variance.sqrt(), -0.5 * variance, ess(log_w), pareto_k(log_w)};
}

Estimate reverse_log_normalizer(const at::Tensor& log_w) {
  Estimate inverse = log_normalizer(log_w);
  inverse.value = -inverse.value;
  inverse.bias = -inverse.bias;
  return inverse;
}

Estimate evidence_lower_bound(const at::Tensor& log_w) {
  const auto k = static_cast<double>(log_w.size(1));
  const at::Tensor unknown = at::full({log_w.size(0)}, NAN, log_w.options());
  const at::Tensor error = k < 2 ? unknown : log_w.std(1, /*unbiased=*/true) / std::sqrt(k);
  return {log_w.mean(1), error, unknown, ess(log_w), pareto_k(log_w)};
}

double std_error_of_mean(const at::Tensor& values) {
  if (values.numel() < 2) return NAN;  // LibTorch would warn
  return values.flatten().std(0, /*unbiased=*/true).item<double>() /
         std::sqrt(static_cast<double>(values.numel()));
}

double interval_width(int64_t count) {
  if (count < 2) return NAN;
  // The expansion of Student's quantile in the degrees of freedom (Abramowitz & Stegun 26.7.5).
  const double z = 1.959963984540054, n = static_cast<double>(count - 1);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n) +
         (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * n * n * n * n);
}

MeanEstimate mean_over_images(const at::Tensor& value, const at::Tensor& std_error) {
  const auto images = static_cast<double>(value.size(1));
  MeanEstimate result;
  result.mean = value.mean().item<double>();
  result.data_std_error = std_error_of_mean(value.mean(0));
  result.monte_carlo_std_error = value.size(0) > 1
                                     ? std_error_of_mean(value.mean(1))
                                     : std_error.square().sum().sqrt().item<double>() / images;
  return result;
}

double bits_per_dim(double log_likelihood, int64_t num_dims) {
  return -log_likelihood / (static_cast<double>(num_dims) * std::log(2.0));
}

}  // namespace crais
