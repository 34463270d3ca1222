// Where the scales of effects bend, fitted to curvatures.
#pragma once

#include <ATen/ATen.h>

namespace crais {

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

}  // namespace crais
