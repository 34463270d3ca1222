#include "bases/base.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/log_math.h"
#include "samplers/importance.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr int64_t kLarge = 1024;  // dimensions from which a factorisation takes seconds

/// Replaces eigenvalues by their absolute values: the saddle-free Newton matrix is positive
/// definite.
at::Tensor made_definite(const at::Tensor& precision) {
  constexpr double kFloor = 1e-6;
  const auto [values, vectors] = at::linalg_eigh(precision);
  const at::Tensor size = values.abs();
  const at::Tensor floored = at::maximum(size, kFloor * std::get<0>(size.max(-1, true)));
  return at::matmul(vectors * floored.unsqueeze(1), vectors.transpose(1, 2));
}

/// The inverse of lower-triangular matrices [P,D,D]. Large matrices are inverted in pieces, so that
/// a signal can stop the work.
at::Tensor inverse_of(const at::Tensor& lower) {
  const int64_t dim = lower.size(-1), piece = dim < kLarge ? dim : kLarge / 2;
  const at::Tensor unit = at::eye(dim, lower.options());
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < dim; begin += piece) {
    if (begin > 0) stop_if_interrupted();
    const at::Tensor columns = unit.slice(1, begin, std::min(begin + piece, dim));
    parts.push_back(at::linalg_solve_triangular(
        lower, columns.expand({lower.size(0), dim, columns.size(1)}), /*upper=*/false));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 2);
}

/// factor_precision of one problem after another, so that a signal can stop the work between two.
Factored factored_one_by_one(const at::Tensor& precision) {
  std::vector<at::Tensor> roots, failed;
  for (int64_t p = 0; p < precision.size(0); ++p) {
    stop_if_interrupted();
    const Factored one = factor_precision(precision.slice(0, p, p + 1));
    roots.push_back(one.covariance_root);
    failed.push_back(one.failed);
  }
  return {at::cat(roots), at::cat(failed)};
}

}  // namespace

at::Tensor Base::log_share() const {
  return partition ? partition->log_share
                   : at::zeros({num_problems()}, fell_back.options().dtype(at::kDouble));
}

AffineMap Base::main_parts() const { return partition ? map.select(main_rows()) : map; }

at::Tensor Base::main_rows() const {
  TORCH_CHECK(partition, "a base of one part a problem has no rows to choose from");
  const at::Tensor counts = partition->counts();
  return counts.cumsum(0) - counts;
}

std::unique_ptr<BaseRule> make_base(const std::string& text, const BaseOptions& options) {
  auto rule = BaseRegistry::instance().make("base", text, options);
  rule->name = text;
  return rule;
}

Base together(const std::vector<Base>& fits) {
  std::vector<at::Tensor> loc, matrix, failed, ambiguous, problem, log_share;
  Cost cost;
  for (size_t p = 0; p < fits.size(); ++p) {
    const Base& fit = fits[p];
    TORCH_CHECK(fit.bijection == fits.front().bijection, "a bijection belongs to all problems");
    loc.push_back(fit.map.loc());
    matrix.push_back(fit.map.matrix());
    failed.push_back(fit.fell_back);
    ambiguous.push_back(fit.ambiguous);
    log_share.push_back(fit.log_share());
    problem.push_back(at::full_like(log_share.back(), static_cast<int64_t>(p), at::kLong));
    cost += fit.cost;
  }
  Base base(AffineMap(at::cat(loc), at::cat(matrix)), at::cat(failed), cost);
  base.ambiguous = at::cat(ambiguous);
  if (base.map.num_problems() > base.num_problems())
    base.partition = Partition{at::cat(problem), at::cat(log_share), base.num_problems()};
  base.bijection = fits.front().bijection;
  if (fits.front().apart.defined()) base.apart = fits.front().apart.expand({base.num_problems()});
  return base;
}

AffineMap first_guess(const Target& target) {
  if (const auto amortised = target.amortised_base()) return *amortised;
  return target.prior_base();
}

Factored factor_precision(const at::Tensor& precision) {
  if (precision.size(0) > 1 && precision.size(-1) >= kLarge) return factored_one_by_one(precision);
  constexpr double kFlat = 1e-12;  // the curvature of piecewise linear densities is below
  const at::Tensor size = precision.abs().flatten(1).amax(-1);
  const at::Tensor failed = ~size.isfinite() | (size < kFlat);
  const at::Tensor unit = at::eye(precision.size(-1), precision.options());
  at::Tensor h = at::where(failed.view({-1, 1, 1}), unit, precision);
  // With rows and columns reversed, H = U U^T for an upper-triangular U. The root is U^-T, so H^-1
  // need not be computed.
  auto [turned, info] = at::linalg_cholesky_ex(h.flip({1, 2}));
  const at::Tensor indefinite = (info > 0).nonzero().squeeze(1);
  if (indefinite.numel() > 0) {
    h = h.index_put({indefinite}, made_definite(h.index({indefinite})));
    turned = at::linalg_cholesky(h.flip({1, 2}));
  }
  const at::Tensor inverse = inverse_of(turned);
  return {inverse.flip({1, 2}).transpose(1, 2).contiguous(), failed};
}

at::Tensor evidence_bound(const at::Tensor& log_density, const at::Tensor& e, const AffineMap& q) {
  const at::Tensor squares = e.to(at::kDouble).square().sum(-1);
  return (log_density.to(at::kDouble) + 0.5 * squares).mean(1) + q.log_abs_det();
}

bool is_nearly_normal(const Target& one, const Base& base, int64_t draws, at::Generator& rng,
                      Cost& cost) {
  constexpr double kOut = 4;
  if (base.map.num_problems() > 1 || (base.fell_back | base.ambiguous).any().item<bool>())
    return false;
  const LogWeights drawn = importance_log_weights(Problem(one.shared(), base.map), draws, rng);
  cost += drawn.cost;
  if (!(drawn.log_w < INFINITY).all().item<bool>()) return false;  // NaN too
  if (!(ess(drawn.log_w).item<double>() > 0.5)) return false;
  const at::Tensor axes = kOut * at::eye(one.dim(), one.options());
  const at::Tensor e = at::cat({at::zeros_like(axes.slice(0, 0, 1)), axes, -axes});
  const at::Tensor height =
      one.log_density(base.map.to_z(e.unsqueeze(0))).to(at::kDouble).flatten();
  cost += Cost{e.size(0), 0};
  return (height[0] - height.slice(0, 1) > kOut).all().item<bool>();
}

AffineMap chosen(const at::Tensor& take, const at::Tensor& loc, const at::Tensor& matrix,
                 const AffineMap& other) {
  return {at::where(take.unsqueeze(1), loc, other.loc()),
          at::where(take.view({-1, 1, 1}), matrix, other.matrix())};
}

}  // namespace crais
