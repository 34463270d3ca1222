#include "core/target.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace crais {

Evaluation Target::evaluate(const at::Tensor& z) const {
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor value = log_density(leaf);
  const at::Tensor grad = torch::autograd::grad({value.sum()}, {leaf})[0];
  return {value.detach(), grad};
}

}  // namespace crais
