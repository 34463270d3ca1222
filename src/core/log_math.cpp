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
  const at::Tensor largest = h.amax(-1, /*keepdim=*/true).clamp_min(-1e300);
  const at::Tensor y = (h - largest).exp();
  const at::Tensor w = log_w.exp();
  const at::Tensor mean = (w * y).sum(-1, /*keepdim=*/true);
  return 2.0 * largest.squeeze(-1) + (w * (y - mean).square()).sum(-1).log();
}

at::Tensor ess(const at::Tensor& log_w) {
  TORCH_CHECK(log_w.dim() == 2, "ess: weights must be [problems, particles], got ", log_w.sizes());
  TORCH_CHECK(!(log_w.isnan() | (log_w == INFINITY)).any().item<bool>(),
              "ess: a log-weight is NaN or +inf");
  const at::Tensor fraction =
      (2.0 * log_mean_exp(log_w) - log_mean_exp(2.0 * log_w)).exp().clamp_max(1.0);
  return at::nan_to_num(fraction, /*nan=*/0.0);
}

at::Tensor cess(const at::Tensor& log_w, const at::Tensor& increment) {
  const at::Tensor log_normalised = log_normalise(log_w);
  const at::Tensor fraction = (2.0 * at::logsumexp(log_normalised + increment, -1) -
                               at::logsumexp(log_normalised + 2.0 * increment, -1))
                                  .exp()
                                  .clamp_max(1.0);
  return at::nan_to_num(fraction, /*nan=*/0.0);
}

}  // namespace crais
