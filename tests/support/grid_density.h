// Densities on a line: quadrature and exact draws, for what has no closed form.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <functional>

namespace crais::testing {

/// An unnormalised density on [low, high], which must hold all of its mass. Smooth and vanishing at
/// the ends, it is integrated by the trapezoid rule to nearly full precision.
class GridDensity {
 public:
  GridDensity(const std::function<at::Tensor(const at::Tensor&)>& log_density, double low,
              double high, int64_t points = 200001)
      : z_(at::linspace(low, high, points, at::kDouble)),
        width_((high - low) / double(points - 1)) {
    const at::Tensor log_g = log_density(z_);
    log_normalizer_ = at::logsumexp(log_g, 0).item<double>() + std::log(width_);
    weights_ = (log_g - log_normalizer_).exp() * width_;
    cdf_ = weights_.cumsum(0);
    cdf_ = cdf_ / cdf_[-1];
  }

  const at::Tensor& grid() const { return z_; }
  double log_normalizer() const { return log_normalizer_; }

  /// E[f] from the values of f on the grid.
  double expect(const at::Tensor& values) const { return (weights_ * values).sum().item<double>(); }

  /// Draws by inversion; within a cell they are uniform.
  at::Tensor sample(at::IntArrayRef sizes, at::Generator& rng) const {
    const at::Tensor u = at::empty(sizes, at::kDouble).uniform_(0, 1, rng);
    const at::Tensor cell = at::searchsorted(cdf_, u).clamp_max(z_.size(0) - 1);
    const at::Tensor place = at::empty(sizes, at::kDouble).uniform_(-0.5, 0.5, rng);
    return z_.index({cell}) + width_ * place;
  }

 private:
  at::Tensor z_, weights_, cdf_;
  double width_, log_normalizer_ = 0;
};

}  // namespace crais::testing
