#include "core/target.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "util/error.h"

namespace crais {

Evaluation Target::evaluate(const at::Tensor& z) const {
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor value = log_density(leaf);
  const at::Tensor grad = torch::autograd::grad({value.sum()}, {leaf})[0];
  return {value.detach(), grad};
}

std::unique_ptr<Target> Target::select(const at::Tensor& /*index*/) const {
  throw Error(ExitCode::kInternal, "this target cannot be divided into its problems");
}

at::Tensor Target::curvature(const at::Tensor& z) const {
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor value = log_density(leaf.unsqueeze(1)).sum();
  const at::Tensor grad = torch::autograd::grad({value}, {leaf}, /*grad_outputs=*/{},
                                                /*retain_graph=*/true, /*create_graph=*/true)[0];
  // A density that is linear in a coordinate has no graph there.
  if (!grad.requires_grad()) return at::zeros({z.size(0), z.size(1), z.size(1)}, z.options());
  std::vector<at::Tensor> rows;
  for (int64_t d = 0; d < z.size(1); ++d)
    rows.push_back(torch::autograd::grad({grad.select(1, d).sum()}, {leaf}, {},
                                         /*retain_graph=*/true)[0]);
  const at::Tensor hessian = at::stack(rows, 1);
  return -0.5 * (hessian + hessian.transpose(1, 2));
}

}  // namespace crais
