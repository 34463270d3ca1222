// Tensors that loops of our own may read: see simd/simd_kernel.h.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace crais {

/// True for contiguous memory of the CPU, of that type, that no graph is made of.
inline bool is_plain(const at::Tensor& x, at::ScalarType type = at::kFloat) {
  return x.is_cpu() && x.scalar_type() == type && x.is_contiguous() &&
         !(c10::GradMode::is_enabled() && x.requires_grad());
}

}  // namespace crais
