#include "estimates/estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/log_math.h"

namespace crais {
namespace {

/// The variance of log Zhat after `num_resamplings` of independent draws, from the shares of
/// starting particles.
at::Tensor genealogical_variance(const at::Tensor& shares, const at::Tensor& num_resamplings) {
  const auto k = static_cast<double>(shares.size(1));
  const at::Tensor apart = (1 - shares.square().sum(-1)).clamp_min(kLeastRest);
  return -((1 + num_resamplings) * std::log1p(1 / (k - 1)) + apart.log()).clamp_max(0);
}

/// The shape of a generalised Pareto distribution fitted to ascending exceedances x, x.back() > 0.
double fitted_shape(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  const auto grid = static_cast<int>(30 + std::sqrt(n));
  const double quartile = x[(x.size() + 2) / 4 - 1];
  const auto shape_at = [&](double t) {
    double sum = 0;
    for (const double value : x) sum += std::log1p(-t * value);
    return sum / n;
  };
  std::vector<double> theta, log_likelihood;
  for (int i = 1; i <= grid; ++i) {
    const double t =
        1 / x.back() + (1 - std::sqrt(grid / (i - 0.5))) / (3 * std::max(quartile, 1e-300));
    const double shape = shape_at(t);
    theta.push_back(t);
    // At t = 0 the profile likelihood has an exponential limit.
    log_likelihood.push_back(n * (std::log(-t / shape) - shape - 1));
  }
  double weights = 0, mean = 0;
  for (size_t i = 0; i < theta.size(); ++i) {
    double others = 0;
    for (const double other : log_likelihood) others += std::exp(other - log_likelihood[i]);
    if (!std::isfinite(others)) continue;
    weights += 1 / others;
    mean += theta[i] / others;
  }
  const double shape = shape_at(mean / weights);
  constexpr double kPriorCount = 10, kPriorShape = 0.5;
  return (n * shape + kPriorCount * kPriorShape) / (n + kPriorCount);
}

constexpr size_t kLeastTail = 20;  // a fit of fewer weights is mostly noise

double shape_of_tail(std::vector<double> log_w) {
  const auto k = static_cast<double>(log_w.size());
  const auto tail = static_cast<size_t>(std::ceil(std::min(0.2 * k, 3 * std::sqrt(k))));
  if (tail < kLeastTail) return std::numeric_limits<double>::quiet_NaN();
  std::partial_sort(log_w.begin(), log_w.begin() + static_cast<int64_t>(tail) + 1, log_w.end(),
                    std::greater<>());
  const double highest = log_w.front();
  const double threshold = std::exp(log_w[tail] - highest);
  std::vector<double> exceedances;
  for (size_t i = tail; i-- > 0;) exceedances.push_back(std::exp(log_w[i] - highest) - threshold);
  constexpr double kRounding = 1e-9;  // relative to the greatest weight
  if (!(exceedances.back() > kRounding)) return -std::numeric_limits<double>::infinity();
  return fitted_shape(exceedances);
}

}  // namespace

std::string to_string(Bound bound) {
  if (bound == Bound::kEstimate) return "estimate";
  return bound == Bound::kLower ? "lower bound" : "upper bound";
}

at::Tensor suspect_error(const Estimate& estimate) {
  constexpr double kLargeError = 0.5;  // nats
  return ~(estimate.std_error <= kLargeError) | ~estimate.value.isfinite();
}

at::Tensor suspect_tail(const Estimate& estimate) { return estimate.pareto_k > kHeavyTail; }

at::Tensor log_rest(const at::Tensor& shares) { return (1 - shares).clamp_min(kLeastRest).log(); }

at::Tensor jackknife_variance(const at::Tensor& left_out) {
  const auto k = static_cast<double>(left_out.size(1));
  return (k - 1) / k * (left_out - left_out.mean(1, /*keepdim=*/true)).square().sum(1);
}

Estimate log_normalizer(const at::Tensor& log_w, const Genealogy& genealogy) {
  const at::Tensor shares = log_normalise(log_w).exp();
  at::Tensor variance = jackknife_variance(log_rest(shares));
  if (log_w.size(1) == 1) {
    variance = at::full_like(variance, NAN);
  } else if (genealogy.roots.defined()) {
    const at::Tensor inherited = at::zeros_like(shares).scatter_add(1, genealogy.roots, shares);
    if (!genealogy.independent_draws) {
      variance = jackknife_variance(log_rest(inherited));
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

double std_error_of_replicates(const at::Tensor& values, const at::Tensor& std_errors) {
  if (values.numel() == 1) return std_errors.item<double>();
  const double spread = std_error_of_mean(values);
  const double own =
      std::sqrt(std_errors.square().mean().item<double>() / static_cast<double>(values.numel()));
  return own > spread ? own : spread;
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
  return {.mean = value.mean().item<double>(),
          .data_std_error = std_error_of_mean(value.mean(0)),
          .monte_carlo_std_error = value.size(0) > 1
                                       ? std_error_of_mean(value.mean(1))
                                       : std_error.square().sum().sqrt().item<double>() / images};
}

double bits_per_dim(double log_likelihood, int64_t num_dims) {
  return -log_likelihood / (static_cast<double>(num_dims) * std::log(2.0));
}
at::Tensor pareto_k(const at::Tensor& log_w) {
  const at::Tensor rows = log_w.to(at::kCPU, at::kDouble).contiguous();
  at::Tensor shapes = at::empty({rows.size(0)}, at::kDouble);
  const auto* value = rows.data_ptr<double>();
  for (int64_t p = 0; p < rows.size(0); ++p)
    shapes[p] = shape_of_tail({value + p * rows.size(1), value + (p + 1) * rows.size(1)});
  return shapes.to(log_w.device());
}

}  // namespace crais
