#include "bases/normal_mixture.h"

#include <cmath>
#include <vector>

namespace crais {
namespace {

constexpr int kEmRounds = 50;            // at most
constexpr double kLeastVariance = 1e-9;  // of variances, in units of the variances of all draws

/// Draws in units of their own mean and covariance, and the map back.
struct Whitened {
  at::Tensor x, loc, root;

  explicit Whitened(const at::Tensor& z) : loc(z.mean(0)) {
    const at::Tensor centred = z - loc;
    at::Tensor covariance =
        at::matmul(centred.t(), centred) / static_cast<double>(std::max<int64_t>(1, z.size(0) - 1));
    const at::Tensor scale = covariance.diagonal().mean();
    covariance = covariance + kLeastVariance * scale * at::eye(z.size(1), z.options());
    const auto [lower, info] = at::linalg_cholesky_ex(covariance);
    root = info.item<int64_t>() == 0 ? lower
                                     : at::diag(covariance.diagonal().clamp_min(1e-300).sqrt());
    x = at::linalg_solve_triangular(root, centred.t(), /*upper=*/false).t().contiguous();
  }
};

/// The log of share times density, at draws [N,D]: [J,N].
at::Tensor log_components(const at::Tensor& x, const NormalMixture& mixture) {
  const at::Tensor apart = (x.unsqueeze(0) - mixture.loc.unsqueeze(1)).transpose(1, 2);  // [J,D,N]
  const at::Tensor e = at::linalg_solve_triangular(mixture.root, apart, /*upper=*/false);
  const at::Tensor log_det = mixture.root.diagonal(0, 1, 2).log().sum(-1);
  const double log_tau = std::log(2 * M_PI);
  return (mixture.log_share - log_det).unsqueeze(1) - 0.5 * e.square().sum(1) -
         0.5 * log_tau * static_cast<double>(x.size(1));
}

NormalMixture maximised(const at::Tensor& x, const at::Tensor& shares) {
  const auto draws = static_cast<double>(x.size(0)), prior = static_cast<double>(x.size(1) + 2);
  const at::Tensor count = shares.sum(1) + 1e-9;  // [J]
  NormalMixture mixture{.loc = at::matmul(shares, x) / count.unsqueeze(1)};
  const at::Tensor apart = x.unsqueeze(0) - mixture.loc.unsqueeze(1);  // [J,N,D]
  const at::Tensor scatter = at::matmul((shares.unsqueeze(2) * apart).transpose(1, 2), apart);
  const at::Tensor pooled = scatter.sum(0) / draws;
  const at::Tensor covariance = (scatter + prior * pooled) / (count + prior).view({-1, 1, 1}) +
                                kLeastVariance * at::eye(x.size(1), x.options());
  mixture.root = at::linalg_cholesky(covariance);
  mixture.log_share = (count / count.sum()).log();
  return mixture;
}

NormalMixture iterated(const at::Tensor& x, at::Tensor shares) {
  NormalMixture mixture;
  for (int i = 0; i < kEmRounds; ++i) {
    mixture = maximised(x, shares);
    const at::Tensor next = responsibilities(mixture, x);
    if (((next - shares).abs().sum() < 1e-3).item<bool>()) break;  // of a draw has moved
    shares = next;
  }
  return mixture;
}

NormalMixture unwhitened(const NormalMixture& mixture, const Whitened& draws) {
  return {at::matmul(mixture.loc, draws.root.t()) + draws.loc, at::matmul(draws.root, mixture.root),
          mixture.log_share};
}

/// The squared distances of draws [N,D] to centres [J,D].
at::Tensor squared_distances(const at::Tensor& x, const at::Tensor& centres) {
  return (x.unsqueeze(1) - centres.unsqueeze(0)).square().sum(-1);
}

}  // namespace

NormalMixture fit_normals(const at::Tensor& z, int64_t count, at::Generator& rng) {
  const Whitened draws(z);
  const at::Tensor first = at::multinomial(at::ones({z.size(0)}, z.options()), 1, false, rng);
  at::Tensor centres = draws.x.index_select(0, first);
  while (centres.size(0) < count) {
    const at::Tensor apart = std::get<0>(squared_distances(draws.x, centres).min(1)) + 1e-12;
    centres = at::cat({centres, draws.x.index_select(0, at::multinomial(apart, 1, false, rng))});
  }
  const at::Tensor nearest = squared_distances(draws.x, centres).argmin(1);
  const at::Tensor shares = at::one_hot(nearest, count).to(at::kDouble).t().contiguous();
  return unwhitened(iterated(draws.x, shares), draws);
}

NormalMixture refit_normals(const at::Tensor& z, const at::Tensor& shares) {
  const Whitened draws(z);
  return unwhitened(iterated(draws.x, shares), draws);
}

at::Tensor responsibilities(const NormalMixture& mixture, const at::Tensor& z) {
  return at::softmax(log_components(z, mixture), 0);
}

at::Tensor log_density(const NormalMixture& mixture, const at::Tensor& z) {
  return at::logsumexp(log_components(z, mixture), 0);
}

}  // namespace crais
