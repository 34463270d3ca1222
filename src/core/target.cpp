#include "core/target.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "util/error.h"

namespace crais {

Evaluation Target::evaluate(const at::Tensor& z) const try {
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor value = log_density(leaf);
  const at::Tensor grad = torch::autograd::grad({value.sum()}, {leaf})[0];
  return {value.detach(), grad};
} catch (const c10::LinAlgError&) {  // of one particle's matrix: its density is NaN
  const int64_t d = z.size(1) > 1 ? 1 : 0, half = z.size(d) / 2;
  if (half == 0 || (d == 0 && !traits_.can_select))
    return {at::full(z.sizes().slice(0, 2), NAN, z.options()), at::zeros_like(z)};
  const auto part = [&](int64_t begin, int64_t end) {
    return (d == 1 ? shared() : slice(begin, end))->evaluate(z.slice(d, begin, end));
  };
  const Evaluation a = part(0, half), b = part(half, z.size(d));
  return {at::cat({a.log_density, b.log_density}, d), at::cat({a.grad, b.grad}, d)};
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
  if (!traits_.prior) return AffineMap::identity(num_problems(), dim(), options());
  return {traits_.prior->loc().expand({num_problems(), -1}).contiguous(),
          traits_.prior->matrix().expand({num_problems(), -1, -1}).contiguous()};
}

std::optional<at::Tensor> Target::true_log_normalizer() const {
  if (!traits_.log_normalizer) return {};
  return traits_.log_normalizer->expand({num_problems()});
}

double probe(const Target& target) {
  const c10::NoGradGuard no_grad;
  at::Tensor points = at::linspace(-1.0, 1.5, target.dim(), target.options()).unsqueeze(0);
  if (const auto& starts = target.traits().starts)
    points = at::cat({points, starts->to(points.options())});
  return target.log_density(points.expand({target.num_problems(), points.size(0), target.dim()}))
      .sum(at::kDouble)
      .item<double>();
}

namespace {

/// The Hessian [P,D,D] by autograd applied twice; NaN where that fails. Copies of few points, up to
/// 128 together, give several rows of it in one pass.
at::Tensor hessian_of(const Target& target, const at::Tensor& z) {
  const int64_t dim = z.size(1), copies = std::clamp<int64_t>(256 / (z.size(0) + 1), 1, dim);
  c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().unsqueeze(1).repeat({1, copies, 1}).requires_grad_(true);
  const auto slopes = [&](const at::Tensor& values, bool again) {
    return torch::autograd::grad({values.sum()}, {leaf}, {}, /*retain_graph=*/true, again)[0];
  };
  const at::Tensor value = target.log_density(leaf);
  try {
    const at::Tensor grad = slopes(value, /*again=*/true);
    if (!grad.requires_grad()) return at::zeros({z.size(0), dim, dim}, z.options());  // linear
    std::vector<at::Tensor> rows;
    for (int64_t d = 0; d < dim; d += copies)
      rows.push_back(slopes(grad.slice(2, d, d + copies).diagonal(0, 1, 2), /*again=*/false));
    return at::cat(rows, 1).slice(1, 0, dim);
  } catch (const c10::LinAlgError&) {
  } catch (const std::runtime_error&) {
  }
  return at::full({z.size(0), z.size(1), z.size(1)}, NAN, z.options());
}

/// The Hessian [P,D,D] by central differences of gradients.
at::Tensor hessian_by_differences(const Target& target, const at::Tensor& z) {
  const double size = z.scalar_type() == at::kDouble ? 1e-5 : 1e-2;
  const at::Tensor step = size * (1 + z.abs());  // [P,D]
  const at::Tensor apart = at::diag_embed(step);
  const at::Tensor here = z.unsqueeze(1), above = target.evaluate(here + apart).grad;
  return (above - target.evaluate(here - apart).grad) / (2 * step.unsqueeze(2));
}

}  // namespace

at::Tensor Target::curvature(const at::Tensor& z) const {
  at::Tensor hessian = hessian_of(*this, z);
  // Some functions have NaN second derivatives far from their mode, though finite gradients.
  const at::Tensor is_sound = hessian.isfinite().flatten(1).all(1);
  if (!is_sound.all().item<bool>())
    hessian = at::where(is_sound.view({-1, 1, 1}), hessian, hessian_by_differences(*this, z));
  return -0.5 * (hessian + hessian.transpose(1, 2));
}

}  // namespace crais
