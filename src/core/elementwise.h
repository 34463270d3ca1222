// Formulas of numbers, for tensors.
#pragma once

#include <ATen/ATen.h>

#include "core/plain.h"

namespace crais {

/// `f` of corresponding elements of float64 tensors of one shape. It is written once, for numbers
/// and for tensors: plain memory is gone through once, where a tensor operation for each sign of
/// the formula would take longer to be called than to compute.
template <class F, class... Tensors>
at::Tensor elementwise(const F& f, const at::Tensor& first, const Tensors&... others) {
  const auto is_alike = [&](const at::Tensor& x) {
    return is_plain(x, at::kDouble) && x.sizes() == first.sizes();
  };
  if (!is_alike(first) || (!is_alike(others) || ...)) return f(first, others...);
  at::Tensor found = at::empty_like(first);
  auto* const to = found.data_ptr<double>();
  const auto fill = [&](const auto*... from) {
    for (int64_t i = 0; i < found.numel(); ++i) to[i] = f(from[i]...);
  };
  fill(first.template data_ptr<double>(), others.template data_ptr<double>()...);
  return found;
}

}  // namespace crais
