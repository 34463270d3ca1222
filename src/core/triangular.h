/// @file
/// Products of row vectors with a large lower-triangular matrix.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// x L^T for x [...,D] and a lower-triangular L [D,D]: [...,D]. Large products go by blocks, which
/// leave out most of the zeros.
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& lower);

/// x L for the same shapes, by blocks too.
at::Tensor times(const at::Tensor& x, const at::Tensor& lower);

}  // namespace crais
