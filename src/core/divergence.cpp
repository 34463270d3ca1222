#include "core/divergence.h"

namespace crais {

at::Tensor Divergence::log_variance(const at::Tensor& kappa, const at::Tensor& variance_weights,
                                    const at::Tensor& ratio_weights) const {
  const at::Tensor log_r = at::logsumexp(ratio_weights + kappa, -1, /*keepdim=*/true);
  const at::Tensor values = g(kappa - log_r), w = variance_weights.exp();
  const at::Tensor mean = (w * values).sum(-1, /*keepdim=*/true);
  return (w * (values - mean).square()).sum(-1).log();
}

}  // namespace crais
