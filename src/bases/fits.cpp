#include "bases/fits.h"

namespace crais {

at::Tensor evidence_bound(const at::Tensor& log_density, const at::Tensor& e, const AffineMap& q) {
  const at::Tensor squares = e.to(at::kDouble).square().sum(-1);
  return (log_density.to(at::kDouble) + 0.5 * squares).mean(1) + q.log_abs_det();
}

AffineMap chosen(const at::Tensor& take, const at::Tensor& loc, const at::Tensor& matrix,
                 const AffineMap& other) {
  return {at::where(take.unsqueeze(1), loc, other.loc()),
          at::where(take.view({-1, 1, 1}), matrix, other.matrix())};
}

at::Tensor mutual_distances(const at::Tensor& z, const at::Tensor& root) {
  const at::Tensor wide = z.to(at::kDouble);
  const at::Tensor apart = (wide.unsqueeze(1) - wide.unsqueeze(2)).transpose(2, 3);
  return at::linalg_solve_triangular(root.to(at::kDouble), apart, /*upper=*/false).square().sum(2);
}

double farthest_of_one_mode(int64_t dim) { return 1 + 0.05 * static_cast<double>(dim); }

}  // namespace crais
