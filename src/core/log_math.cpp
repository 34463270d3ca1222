#include "core/log_math.h"

#include <cmath>

namespace crais {

at::Tensor log_mean_exp(const at::Tensor& x) {
  return at::logsumexp(x, -1) - std::log(static_cast<double>(x.size(-1)));
}

at::Tensor log_normalise(const at::Tensor& log_w) {
  const at::Tensor total = at::logsumexp(log_w, -1, /*keepdim=*/true);
  const double uniform = -std::log(static_cast<double>(log_w.size(-1)));
  return at::where(at::isinf(total), at::full_like(log_w, uniform), log_w - total);
}

at::Tensor log_variance_of_exp(const at::Tensor& h, const at::Tensor& log_w) {
  // The largest h must not set the scale: its particle may have no weight.
  const at::Tensor log_mean = at::logsumexp(log_w + h, -1, /*keepdim=*/true);
  const at::Tensor apart = (h - log_mean).abs();
  const at::Tensor log_deviation =
      at::where(h == log_mean, at::full_like(h, -INFINITY),
                at::maximum(h, log_mean) + at::log(-at::expm1(-apart)));
  return at::logsumexp(log_w + 2.0 * log_deviation, -1);
}

at::Tensor ess(const at::Tensor& log_w) {
  TORCH_CHECK(log_w.dim() == 2, "ess: weights must be [problems, particles], got ", log_w.sizes());
  TORCH_CHECK(!(log_w.isnan() | (log_w == INFINITY)).any().item<bool>(),
              "ess: a log-weight is NaN or +inf");
  const at::Tensor fraction =
      (2.0 * log_mean_exp(log_w) - log_mean_exp(2.0 * log_w)).exp().clamp_max(1.0);
  return at::nan_to_num(fraction, /*nan=*/0.0);
}

at::Tensor cess_normalised(const at::Tensor& log_w, const at::Tensor& increment) {
  const at::Tensor once = log_w + increment;
  const at::Tensor fraction =
      (2.0 * at::logsumexp(once, -1) - at::logsumexp(once + increment, -1)).exp().clamp_max(1.0);
  return at::nan_to_num(fraction, /*nan=*/0.0);
}

}  // namespace crais
