// Tensors that the loops of crais may read directly: see simd/simd_kernel.h.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace crais {

/// True for contiguous CPU memory of type `type` outside any autograd graph.
inline bool is_plain(const at::Tensor& x, at::ScalarType type = at::kFloat) {
  return x.is_cpu() && x.scalar_type() == type && x.is_contiguous() &&
         !(c10::GradMode::is_enabled() && x.requires_grad());
}

}  // namespace crais
