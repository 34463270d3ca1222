#include "estimates/pareto.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace crais {
namespace {

/// The shape of a generalised Pareto distribution from exceedances x, ascending, x.back() > 0.
double fitted_shape(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  const auto grid = static_cast<int>(30 + std::sqrt(n));
  const double quartile = x[(x.size() + 2) / 4 - 1];
  std::vector<double> theta, log_likelihood;
  for (int i = 1; i <= grid; ++i) {
    const double t =
        1 / x.back() + (1 - std::sqrt(grid / (i - 0.5))) / (3 * std::max(quartile, 1e-300));
    double shape = 0;
    for (const double value : x) shape += std::log1p(-t * value);
    shape /= n;
    theta.push_back(t);
    // At t = 0 the profile likelihood has its exponential limit.
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
  mean /= weights;
  double shape = 0;
  for (const double value : x) shape += std::log1p(-mean * value);
  shape /= n;
  constexpr double kPriorCount = 10, kPriorShape = 0.5;
  return (n * shape + kPriorCount * kPriorShape) / (n + kPriorCount);
}

constexpr size_t kLeastTail = 20;  // with fewer the fit is mostly noise

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
  constexpr double kRounding = 1e-9;  // of the greatest weight
  if (!(exceedances.back() > kRounding)) return -std::numeric_limits<double>::infinity();
  return fitted_shape(exceedances);
}

}  // namespace

at::Tensor pareto_k(const at::Tensor& log_w) {
  const at::Tensor rows = log_w.to(at::kCPU, at::kDouble).contiguous();
  at::Tensor shapes = at::empty({rows.size(0)}, at::kDouble);
  const auto* value = rows.data_ptr<double>();
  for (int64_t p = 0; p < rows.size(0); ++p)
    shapes[p] = shape_of_tail({value + p * rows.size(1), value + (p + 1) * rows.size(1)});
  return shapes.to(log_w.device());
}

}  // namespace crais
