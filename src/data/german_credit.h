// The German credit data, which the library carries.
#pragma once

#include <ATen/ATen.h>

namespace crais {

/// [1000,25] float64: 24 features of an applicant, then 1 for good credit and 2 for bad.
///
/// Statlog German credit (H. Hofmann, 1994), UCI Machine Learning Repository, CC BY 4.0: its
/// numerical form, credit amounts in hundreds of marks.
at::Tensor german_credit();

}  // namespace crais
