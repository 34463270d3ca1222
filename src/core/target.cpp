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

Evaluation Target::evaluate_with_graph(const at::Tensor& z) const {
  const at::Tensor value = log_density(z);
  return {value, torch::autograd::grad({value.sum()}, {z}, /*grad_outputs=*/{},
                                       /*retain_graph=*/true, /*create_graph=*/true)[0]};
}

std::shared_ptr<const Target> Target::select(const at::Tensor& /*index*/) const {
  throw argument_error("this target cannot be divided into its problems (it has no `select`)");
}

std::shared_ptr<const Target> Target::slice(int64_t begin, int64_t end) const {
  if (begin == 0 && end == num_problems()) return shared();
  return select(at::arange(begin, end, options().dtype(at::kLong)));
}

std::shared_ptr<const Target> Target::shared() const {
  if (auto owned = weak_from_this().lock()) return owned;
  return borrow(*this);
}

AffineMap Target::prior_base() const {
  return AffineMap::identity(num_problems(), dim(), options());
}

std::vector<std::string> Target::base_candidates() const {
  if (amortised_base()) return {"laplace", "encoder", "prior"};
  return {"laplace", "prior"};
}

double probe(const Target& target) {
  const c10::NoGradGuard no_grad;
  const at::Tensor somewhere = at::linspace(-1.0, 1.5, target.dim(), target.options());
  return target.log_density(somewhere.expand({target.num_problems(), 1, target.dim()}))
      .to(at::kDouble)
      .sum()
      .item<double>();
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
