// Fits to draws and curvatures of one density: funnels, couplings, splines.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "bases/base.h"
#include "bases/normal_mixture.h"
#include "core/coupling.h"
#include "core/spline.h"

namespace crais {

constexpr double kWorthwhile = 0.05;  // nats that a richer fit must gain

/// The density at points z [M,D].
class At {
 public:
  At(const Target& one, const at::Tensor& z)
      : target_(one.select(at::zeros({z.size(0)}, one.options().dtype(at::kLong)))),
        z_(z.to(one.options())) {}

  at::Tensor curvature() const { return on_cpu(target_->curvature(z_)); }  // [M,D,D]
  /// log gamma [M] and its gradient [M,D].
  std::pair<at::Tensor, at::Tensor> evaluate() const {
    const Evaluation at = target_->evaluate(z_.unsqueeze(1));
    return {on_cpu(at.log_density).squeeze(1), on_cpu(at.grad).squeeze(1)};
  }

 private:
  std::shared_ptr<const Target> target_;
  at::Tensor z_;
};

/// How scales depend on a few coordinates, the drivers, as curvatures show it.
struct Funnels {
  at::Tensor drivers;     // [D] bool
  at::Tensor dependent;   // [D] bool: coordinates whose scales depend on the drivers
  at::Tensor is_concave;  // [D] bool: all curvatures along this coordinate were positive
  at::Tensor draws;       // [M,K,D] float64: K rough draws at each place far along the drivers
  // [2,D,1+D] float64: weights of 1 and z in two affine functions t and r, if the log-scale of a
  // coordinate is r - knee(t) (core/coupling.h); else 0. The precision is that of two normals,
  // whose scales are log-linear in the drivers.
  at::Tensor knees;
};

/// What is known of funnels without a look at the density at z [N,D]: nothing.
Funnels no_funnels(const at::Tensor& z);

/// Looks for drivers at draws z [N,D] float64 of one density. Draws seldom show a neck, but
/// curvatures have no noise: one coordinate moves, and they show which scales change. Then drivers
/// are moved far out, and the other coordinates are drawn there by Laplace's method, where the
/// density is not negligible.                                               [Rue et al. 2009]
/// Cost: added, 32 curvatures and one to four more for each coordinate, and if there are drivers 64
/// to 192 with two evaluations each.
Funnels find_funnels(const Target& one, const at::Tensor& z, at::Generator& rng, Cost& cost);

/// The coupling that makes draws z [N,D] float64 more nearly normal. A few coordinates, the
/// drivers, are chosen: those on which most of the scales and bends of the rest depend. Null if
/// there are none. Means and log-scales are those of a regression with unequal variances.
///                                                                  [Harvey 1976; Aitkin 1987]
/// What `funnels` knows comes first: draws can be misleading.
std::shared_ptr<const Coupling> fit_coupling(const at::Tensor& z, const Funnels& funnels);

struct SplineOptions {
  int64_t most_normals = 4;  // that describe a coordinate
  at::Tensor is_heavy = {};  // [D] bool: coordinates whose tails are heavy whatever draws say
};

/// The splines that make coordinates of draws z [N,D] float64 normal whose densities are better
/// described by several normals than by one (skew, or with several modes), or whose tails are
/// heavy. Null if there are none.
std::shared_ptr<const Spline> fit_spline(const at::Tensor& z, const SplineOptions& options = {});

/// Precisions exp(a + v x) + exp(b + w x) of J coordinates at x [A]. An effect has such a precision
/// if two normals of log-linear scales meet: its data and its prior, say.
struct PrecisionSums {
  at::Tensor a, v, b, w;  // [J], [J,A], [J], [J,A]
  at::Tensor misfit;      // [J]: mean square of the residuals of log precisions
};

/// Fitted to log precisions [N,J] at x [N,A], which have no noise. A weight is 0 where `counts`
/// [J,A] is false.                                       [Levenberg 1944; Marquardt 1963]
PrecisionSums fit_precision_sums(const at::Tensor& log_precisions, const at::Tensor& x,
                                 const at::Tensor& counts);

/// The base of one density of many dimensions, of which `draws` check that it is nearly normal.
Base fit_many_dims(const Target& one, const BaseOptions& options, int64_t draws,
                   at::Generator& rng);

}  // namespace crais
