#include "targets/product.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace crais {

at::Tensor Product::curvature(const at::Tensor& z) const {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor slope =
      torch::autograd::grad({log_factors(leaf).sum()}, {leaf}, {}, true, /*create_graph=*/true)[0];
  const at::Tensor second =
      slope.requires_grad() ? torch::autograd::grad({slope.sum()}, {leaf})[0] : at::zeros_like(z);
  return at::diag_embed(-second);
}

}  // namespace crais
