#include "bases/base.h"

namespace crais {
namespace {

/// Positive definite by taking eigenvalues by their size: the saddle-free Newton matrix.
at::Tensor made_definite(const at::Tensor& precision) {
  constexpr double kFloor = 1e-6;
  const auto [values, vectors] = at::linalg_eigh(precision);
  const at::Tensor size = values.abs();
  const at::Tensor floored = at::maximum(size, kFloor * std::get<0>(size.max(-1, true)));
  return at::matmul(vectors * floored.unsqueeze(1), vectors.transpose(1, 2));
}

}  // namespace

AffineMap Base::main_parts() const { return partition ? map.select(main_rows()) : map; }

at::Tensor Base::main_rows() const {
  TORCH_CHECK(partition, "a base of one part a problem has no rows to choose from");
  const at::Tensor counts = partition->counts();
  return counts.cumsum(0) - counts;
}

AffineMap first_guess(const Target& target) {
  if (const auto amortised = target.amortised_base()) return *amortised;
  return target.prior_base();
}

Factored factor_precision(const at::Tensor& precision) {
  constexpr double kFlat = 1e-12;  // as of densities that are linear in pieces
  const at::Tensor size = precision.abs().flatten(1).amax(-1);
  const at::Tensor failed = ~size.isfinite() | (size < kFlat);
  const at::Tensor unit = at::eye(precision.size(-1), precision.options());
  at::Tensor h = at::where(failed.view({-1, 1, 1}), unit, precision);
  // With rows and columns turned round, H = U U^T for an upper-triangular U: the root is U^-T, and
  // H^-1 need not be made.
  auto [turned, info] = at::linalg_cholesky_ex(h.flip({1, 2}));
  const at::Tensor indefinite = (info > 0).nonzero().squeeze(1);
  if (indefinite.numel() > 0) {
    h = h.index_put({indefinite}, made_definite(h.index({indefinite})));
    turned = at::linalg_cholesky(h.flip({1, 2}));
  }
  const at::Tensor inverse =
      at::linalg_solve_triangular(turned, unit.expand_as(turned), /*upper=*/false);
  return {inverse.flip({1, 2}).transpose(1, 2).contiguous(), failed};
}

}  // namespace crais
