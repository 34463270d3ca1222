// Tensors that plain loops over numbers may read: see also simd/simd_kernel.h.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace crais {

/// True for contiguous CPU memory of type `type` outside any autograd graph.
inline bool is_plain(const at::Tensor& x, at::ScalarType type = at::kFloat) {
  return x.is_cpu() && x.scalar_type() == type && x.is_contiguous() &&
         !(c10::GradMode::is_enabled() && x.requires_grad());
}

/// Applies `f` to corresponding elements of float64 tensors of one shape. `f` is written once, for
/// numbers and for tensors. Plain memory takes one loop over numbers: one tensor operation for each
/// sign of the formula would take longer to call than to compute.
template <class F, class... Tensors>
at::Tensor elementwise(const F& f, const at::Tensor& first, const Tensors&... others) {
  const auto is_alike = [&](const at::Tensor& x) {
    return is_plain(x, at::kDouble) && x.sizes() == first.sizes();
  };
  if (!is_alike(first) || (!is_alike(others) || ...)) return f(first, others...);
  at::Tensor result = at::empty_like(first);
  auto* const to = result.data_ptr<double>();
  const auto fill = [&](const auto*... from) {
    for (int64_t i = 0; i < result.numel(); ++i) to[i] = f(from[i]...);
  };
  fill(first.template data_ptr<double>(), others.template data_ptr<double>()...);
  return result;
}

}  // namespace crais
