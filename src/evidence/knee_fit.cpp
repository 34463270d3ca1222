#include <cmath>

#include "evidence/fits.h"

namespace crais {
namespace {

at::Tensor with_constant(const at::Tensor& x) {
  return at::cat({at::ones({x.size(0), 1}, x.options()), x}, 1);
}

/// [J,N,2]: the logs of both terms, for weights (a, v, b, w) [J,2+2A] and features (1, x) [N,1+A].
at::Tensor log_terms(const at::Tensor& weights, const at::Tensor& features) {
  return at::matmul(features, weights.view({weights.size(0), 2, -1}).transpose(1, 2));
}

/// Half of the least precision is exp(a), and exp(b) is the rest.
at::Tensor first_weights(const at::Tensor& wanted, int64_t count) {
  const at::Tensor a = std::get<0>(wanted.min(1, /*keepdim=*/true)) - std::log(2.0);
  const at::Tensor b = (wanted + at::log1p(-(a - wanted).exp())).mean(1, /*keepdim=*/true);
  const at::Tensor flat = at::zeros({wanted.size(0), count / 2 - 1}, wanted.options());
  return at::cat({a, flat, b, flat}, 1);
}

/// Gauss and Newton's step at weights [J,2+2A], shortened by `damping` [J].
at::Tensor damped_step(const at::Tensor& weights, const at::Tensor& features,
                       const at::Tensor& wanted, const at::Tensor& damping,
                       const at::Tensor& is_free) {
  constexpr double kLeast = 1e-6, kRidge = 1e-9;
  const at::Tensor terms = log_terms(weights, features), now = terms.logsumexp(2);
  const at::Tensor share = (terms - now.unsqueeze(2)).exp();  // [J,N,2]
  const at::Tensor slopes =
      (share.unsqueeze(3) * features.unsqueeze(1)).flatten(2) * is_free.unsqueeze(1);  // [J,N,2+2A]
  const at::Tensor gram = at::matmul(slopes.transpose(1, 2), slopes);
  const at::Tensor slope = at::matmul(slopes.transpose(1, 2), (wanted - now).unsqueeze(2));
  const at::Tensor ridge = damping.unsqueeze(1) * (gram.diagonal(0, 1, 2) + kLeast) + kRidge;
  return std::get<0>(at::linalg_solve_ex(gram + at::diag_embed(ridge), slope)).squeeze(2) * is_free;
}

}  // namespace

PrecisionSums fit_precision_sums(const at::Tensor& log_precisions, const at::Tensor& x,
                                 const at::Tensor& counts) {
  constexpr int kRounds = 60;
  constexpr double kShorter = 4, kLonger = 0.3, kMostDamping = 1e8;
  constexpr double kFar = 40;  // nats: where no bend is in sight, any far one will do
  const at::Tensor features = with_constant(x), wanted = log_precisions.t();
  const at::Tensor of_term =
      at::cat({at::ones({counts.size(0), 1}, x.options()), counts.to(x.options())}, 1);
  const at::Tensor is_free = at::cat({of_term, of_term}, 1);
  at::Tensor weights = first_weights(wanted, is_free.size(1));
  const auto loss = [&] {
    return (log_terms(weights, features).logsumexp(2) - wanted).square().mean(1);
  };
  at::Tensor damping = at::ones({wanted.size(0)}, x.options()), least = loss();
  for (int i = 0; i < kRounds; ++i) {
    const at::Tensor before = weights;
    weights = before + damped_step(before, features, wanted, damping, is_free);
    const at::Tensor now = loss(), is_better = now < least;
    weights = at::where(is_better.unsqueeze(1), weights, before);
    least = at::where(is_better, now, least);
    damping =
        (damping * at::where(is_better, kLonger, kShorter)).clamp(1 / kMostDamping, kMostDamping);
  }
  const int64_t half = features.size(1);
  // The first term is that which changes less.
  const at::Tensor pairs = weights.view({-1, 2, half}), sizes = pairs.slice(2, 1).norm(2, {2});
  const at::Tensor in_order =
      at::where((sizes.select(1, 0) <= sizes.select(1, 1)).view({-1, 1, 1}), pairs, pairs.flip(1));
  const at::Tensor a = in_order.select(1, 0), b = in_order.select(1, 1);
  const at::Tensor constant = at::maximum(a.select(1, 0), std::get<0>(wanted.min(1)) - kFar);
  return {constant, a.slice(1, 1), b.select(1, 0), b.slice(1, 1), least};
}

}  // namespace crais
