// Normalisers and cell probabilities by quadrature, for targets in the plane and for products.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/target.h"

namespace crais::testing {

/// A density in the plane on a grid that holds all of its mass: the trapezoid rule, which for
/// smooth densities is exact to rounding.
class PlaneQuadrature {
 public:
  static constexpr int64_t kPoints = 800, kCells = 8, kWidth = kPoints / kCells;

  explicit PlaneQuadrature(const Target& target, double reach = 40) {
    // A coarse look at where the mass is, then the grid.
    const at::Tensor coarse = at::arange(-reach, reach, 0.25, at::kDouble);
    const at::Tensor seen = on_grid(target, coarse, coarse);
    const at::Tensor inside = (seen > seen.max() - 60).nonzero();
    for (int64_t axis = 0; axis < 2; ++axis) {
      const at::Tensor index = inside.select(1, axis);
      const double low = coarse[index.min()].item<double>() - 0.5;
      const double high = coarse[index.max()].item<double>() + 0.5;
      axes_.push_back(at::linspace(low, high, kPoints, at::kDouble));
    }
    const at::Tensor log_g = on_grid(target, axes_[0], axes_[1]);
    log_normalizer_ =
        log_g.flatten().logsumexp(0).item<double>() + std::log(step(0)) + std::log(step(1));
    mass_ = (log_g - log_g.flatten().logsumexp(0)).exp();
  }

  double log_normalizer() const { return log_normalizer_; }

  /// Probabilities of kCells x kCells equal cells, and how many of the draws [N,2] lie in each.
  at::Tensor probabilities() const {
    return mass_.view({kCells, kWidth, kCells, kWidth}).sum({1, 3}).flatten();
  }
  at::Tensor counts(const at::Tensor& draws) const {
    std::vector<at::Tensor> cell;
    for (int64_t axis = 0; axis < 2; ++axis) {
      // A grid point stands for the half steps around it.
      const at::Tensor place = (draws.select(-1, axis) - axes_[size_t(axis)][0]) / step(axis) + 0.5;
      cell.push_back((place / double(kWidth)).floor().clamp(0, kCells - 1).to(at::kLong));
    }
    return at::bincount(cell[0] * kCells + cell[1], {}, kCells * kCells).to(at::kDouble);
  }

 private:
  double step(int64_t axis) const {
    const at::Tensor& values = axes_[size_t(axis)];
    return (values[1] - values[0]).item<double>();
  }

  static at::Tensor on_grid(const Target& target, const at::Tensor& x, const at::Tensor& y) {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& some : x.split(100)) {
      const at::Tensor points = at::stack(at::meshgrid({some, y}, "ij"), -1).view({1, -1, 2});
      rows.push_back(target.log_density(points.expand({target.num_problems(), -1, 2}))[0]
                         .to(at::kDouble)
                         .view({some.size(0), -1}));
    }
    return at::cat(rows);
  }

  std::vector<at::Tensor> axes_;
  at::Tensor mass_;
  double log_normalizer_ = 0;
};

/// A density whose coordinates are independent, one coordinate at a time: along the line through
/// `anchor`, gamma is f_d times a constant. In z = sinh(u), so that heavy tails end.
class ProductQuadrature {
 public:
  /// anchor [D], a point of some density.
  ProductQuadrature(const Target& target, const at::Tensor& anchor)
      : u_(at::linspace(-kReach, kReach, kPoints, at::kDouble)) {
    const double step = 2 * kReach / double(kPoints - 1);
    const at::Tensor z = at::sinh(u_), log_slope = at::cosh(u_).log();
    const auto at_points = [&](const at::Tensor& points) {
      return target.log_density(points.unsqueeze(0).expand({target.num_problems(), -1, -1}))[0];
    };
    const double at_anchor = at_points(anchor.unsqueeze(0)).item<double>();
    log_normalizer_ = at_anchor;
    for (int64_t d = 0; d < target.dim(); ++d) {
      at::Tensor line = anchor.repeat({kPoints, 1});
      line.select(1, d).copy_(z);
      const at::Tensor log_f = at_points(line) - at_anchor + log_slope;
      const at::Tensor total = log_f.logsumexp(0);
      log_normalizer_ += total.item<double>() + std::log(step);
      const at::Tensor mass = (log_f - total).exp();
      cdfs_.push_back(mass.cumsum(0) - 0.5 * mass);
    }
  }

  double log_normalizer() const { return log_normalizer_; }

  /// The distribution function of coordinate d at draws [N]: uniform if they are of the density.
  at::Tensor distribution(int64_t d, const at::Tensor& draws) const {
    const at::Tensor place = ((at::asinh(draws) + kReach) / (2 * kReach) * double(kPoints - 1))
                                 .clamp(0, kPoints - 1.001);
    const at::Tensor below = place.floor().to(at::kLong), share = place - place.floor();
    const at::Tensor& cdf = cdfs_[size_t(d)];
    return (1 - share) * cdf.index({below}) + share * cdf.index({below + 1});
  }

 private:
  static constexpr double kReach = 14;
  static constexpr int64_t kPoints = 28001;

  at::Tensor u_;
  std::vector<at::Tensor> cdfs_;
  double log_normalizer_ = 0;
};

/// The largest |z| of binomial counts [C] of `total` draws against probabilities [C]. Cells where
/// fewer than five are expected share one.
inline double worst_count(const at::Tensor& counts, const at::Tensor& probabilities, double total) {
  const at::Tensor is_rare = probabilities * total < 5;
  const auto pooled = [&](const at::Tensor& x) {
    return at::cat({x.masked_select(~is_rare), x.masked_select(is_rare).sum().unsqueeze(0)});
  };
  const at::Tensor p = pooled(probabilities), expected = p * total;
  const at::Tensor sd = (expected * (1 - p)).clamp_min(1).sqrt();
  return ((pooled(counts) - expected) / sd).abs().max().item<double>();
}

}  // namespace crais::testing
