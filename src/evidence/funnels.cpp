#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "evidence/fits.h"

namespace crais {
namespace {

constexpr int64_t kFewestPlaces = 8;  // points or places that say something

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

/// `count` of the rows of z, evenly spaced.
at::Tensor some_of(const at::Tensor& z, int64_t count) {
  const auto last = static_cast<double>(z.size(0) - 1);
  return z.index_select(
      0, at::linspace(0, last, std::min(count, z.size(0)), at::kDouble).round().to(at::kLong));
}

/// -1/2 log of diagonals of curvatures [...,D]: the log-scale of each coordinate given all others.
/// Not a number where the density is not concave along a coordinate.
at::Tensor log_scales_of(const at::Tensor& diagonals) { return -0.5 * diagonals.log(); }

/// How log-scales of coordinates depend on coordinates.
struct Effects {
  at::Tensor of_moves;    // [D,D]: mean squared change of a row's if a column's coordinate moves
  at::Tensor may_depend;  // [D] bool: like those of effects given their scales
};

/// One coordinate at a time moves by its standard deviation, `scale` [D], from some of points
/// [M,D], whose log-scales are [M,D]. A place without a density says nothing.
Effects effects_of_moves(const Target& one, const at::Tensor& points, const at::Tensor& log_scales,
                         const at::Tensor& scale, Cost& cost) {
  constexpr int64_t kProbes = 96, kMostEach = 4;
  constexpr double kOfItself = 0.02;  // nats squared
  constexpr double kNotable = 0.1;    // of the largest effect of another coordinate
  constexpr int64_t kFew = 3;         // scales that multiply
  const int64_t dim = points.size(1);
  const int64_t each = std::clamp<int64_t>(kProbes / dim, 1, kMostEach);
  const at::Tensor which = at::arange(dim).repeat_interleave(each);
  const at::Tensor from = at::remainder(at::arange(dim * each), points.size(0));
  const at::Tensor step = scale.index_select(0, which).unsqueeze(1);
  const at::Tensor moved = points.index_select(0, from).scatter_add(1, which.unsqueeze(1), step);
  const at::Tensor diagonals = At(one, moved).curvature().diagonal(0, 1, 2);
  cost += Cost::with_gradient(moved.size(0) * one.curvature_cost());
  const at::Tensor change = log_scales_of(diagonals) - log_scales.index_select(0, from);
  const at::Tensor squares = change.square().nan_to_num(0, 0, 0).view({dim, each, dim}).mean(1).t();
  const at::Tensor own = squares.diagonal(), of_others = squares - at::diag(own);
  const at::Tensor notable = kNotable * std::get<0>(of_others.max(1));
  // Given its scales an effect is normal: its own place does not matter, and few others do.
  return {of_others, (own < kOfItself) & (own < notable) & ~(diagonals <= 0).any(0) &
                         ((of_others > notable.unsqueeze(1)).sum(1) <= kFew)};
}

/// The coordinates on which log-scales of others depend, and these others: [D] bool each.
std::pair<at::Tensor, at::Tensor> drivers_of(const Effects& effects, const at::Tensor& is_concave) {
  constexpr double kDepends = 0.01;  // nats squared
  const at::Tensor may_depend = effects.may_depend & is_concave;
  const at::Tensor counts = (effects.of_moves > kDepends) & may_depend.unsqueeze(1) & ~may_depend;
  const at::Tensor drivers = counts.any(0), dependent = counts.any(1);
  // At most a scale for each effect, and a common one: else no scales are at work.
  const bool are_few = drivers.sum().item<int64_t>() <= 1 + dependent.sum().item<int64_t>();
  return {drivers & are_few, dependent & are_few};
}

/// The rows of Funnels::knees by log-scales [N,D] at z [N,D]. Drivers of a coordinate have
/// notable `effects` [D,D].
at::Tensor knees_of(const at::Tensor& log_scales, const at::Tensor& z, const Funnels& funnels,
                    const at::Tensor& effects, const at::Tensor& loc, const at::Tensor& scale) {
  constexpr double kSlight = 1e-3;  // nats squared
  constexpr double kMisfit = 0.02;  // nats squared of log-scales
  constexpr int64_t kPointsPerWeight = 3;
  const at::Tensor driving = funnels.drivers.nonzero().squeeze(1),
                   dependent = funnels.dependent.nonzero().squeeze(1);
  at::Tensor knees = at::zeros({2, z.size(1), 1 + z.size(1)}, z.options());
  const at::Tensor known = log_scales.index_select(1, dependent);
  const at::Tensor sound = known.isfinite().all(1).nonzero().squeeze(1);
  const at::Tensor log_precisions = -2 * known.index_select(0, sound);
  const at::Tensor x = ((z.index_select(0, sound) - loc) / scale).index_select(1, driving);
  if (x.size(0) < kPointsPerWeight * 2 * (1 + x.size(1))) return knees;
  const PrecisionSums fit = fit_precision_sums(
      log_precisions, x, effects.index_select(0, dependent).index_select(1, driving) > kSlight);
  // Affine in x = (z - loc) / scale.
  const auto by_z = [&](const at::Tensor& offset, const at::Tensor& by_x) {
    const at::Tensor slopes = by_x / scale.index_select(0, driving);
    return at::zeros({dependent.size(0), 1 + z.size(1)}, z.options())
        .index_copy(1, 1 + driving, slopes)
        .index_copy(1, at::zeros({1}, at::kLong),
                    (offset - at::mv(slopes, loc.index_select(0, driving))).unsqueeze(1));
  };
  const at::Tensor rows = at::stack({by_z(0.5 * (fit.a - fit.b), 0.5 * (fit.v - fit.w)),
                                     by_z(-0.5 * (fit.a + std::log(2.0)), -0.5 * fit.v)});
  const at::Tensor holds = (0.25 * fit.misfit < kMisfit) & rows.isfinite().all(2).all(0);
  return knees.index_copy(1, dependent, rows.masked_fill(~holds.view({1, -1, 1}), 0));
}

/// Draws [M,D,K] of N(0, I_D), K for each place: pairs about 0 in orthogonal directions, so that
/// they have the right mean, and up to 32 dimensions the right covariance as well.
at::Tensor even_normals(int64_t places, int64_t dim, at::Generator& rng) {
  constexpr int64_t kFewestDirections = 8, kMostDirections = 32;
  const int64_t directions = std::min(dim, kMostDirections),
                turns = (kFewestDirections + directions - 1) / directions;
  const at::Tensor rotated =
      std::get<0>(at::linalg_qr(at::randn({places, turns, dim, directions}, rng, at::kDouble)));
  const at::Tensor e = (std::sqrt(static_cast<double>(dim)) * rotated).transpose(1, 2).flatten(2);
  return at::cat({e, -e}, 2);
}

/// What is found far along the drivers.
struct FarPlaces {
  at::Tensor z, log_scales;  // [M,D]: where curvatures are known
  at::Tensor draws;          // [M,K,D]
};

/// Rough draws with the drivers at x [M,D]: the other coordinates are drawn from normals at the
/// ends of two steps of Newton's method that share a curvature.
FarPlaces conditional_draws(const Target& one, const at::Tensor& x, const at::Tensor& drivers,
                            at::Generator& rng) {
  constexpr double kLeast = 8;  // nats below the highest place along the drivers
  constexpr double kShort = 3;  // nats that a second step may climb: else it has no mode there
  const at::Tensor rest = drivers.logical_not().nonzero().squeeze(1);
  const At start(one, x);
  const at::Tensor curvature = start.curvature();
  const at::Tensor precision = curvature.index_select(1, rest).index_select(2, rest);
  const auto factored = at::linalg_cholesky_ex(precision);  // A, and H = A A^T
  const at::Tensor &root = std::get<0>(factored), &failed = std::get<1>(factored);
  const auto newton = [&](const at::Tensor& z, const at::Tensor& gradient) {
    const at::Tensor step =
        at::cholesky_solve(gradient.index_select(1, rest).unsqueeze(2), root).squeeze(2);
    return z.index_add(1, rest, step);
  };
  const at::Tensor near = newton(x, start.evaluate().second);
  const auto [height, gradient] = At(one, near).evaluate();
  const at::Tensor mode = newton(near, gradient);
  // The density of the drivers, by Laplace's method. The second step is short.
  const at::Tensor climbed = 0.5 * (gradient * (mode - near)).sum(1);
  const at::Tensor of_drivers = (height + climbed - root.diagonal(0, 1, 2).log().sum(1))
                                    .masked_fill((failed != 0) | ~(climbed < kShort),
                                                 -std::numeric_limits<double>::infinity())
                                    .nan_to_num(-std::numeric_limits<double>::infinity());
  const at::Tensor e = even_normals(x.size(0), rest.size(0), rng);
  const at::Tensor about =
      at::linalg_solve_triangular(root.transpose(1, 2), e, /*upper=*/true).transpose(1, 2);
  const at::Tensor draws =
      mode.unsqueeze(1).expand({-1, about.size(1), -1}).index_add(2, rest, about);
  const at::Tensor kept =
      (of_drivers > of_drivers.max() - kLeast) & draws.isfinite().flatten(1).all(1);
  const at::Tensor places = kept.nonzero().squeeze(1);
  return {x.index_select(0, places),
          log_scales_of(curvature.diagonal(0, 1, 2)).index_select(0, places),
          draws.index_select(0, places)};
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

Funnels no_funnels(const at::Tensor& z) {
  const int64_t dim = z.size(1);
  const at::Tensor none = at::zeros({dim}, at::kBool);
  return {none, none, none, z.slice(0, 0, 0).unsqueeze(1),
          at::zeros({2, dim, 1 + dim}, z.options())};
}

Funnels find_funnels(const Target& one, const at::Tensor& z, at::Generator& rng, Cost& cost) {
  constexpr int64_t kPoints = 32, kPlaces = 64, kPlacesEach = 16, kMostPlaces = 192;
  constexpr double kReach = 30;  // standard deviations of a driver
  Funnels funnels = no_funnels(z);
  at::Tensor points = some_of(z, kPoints);
  at::Tensor diagonal = At(one, points).curvature().diagonal(0, 1, 2);
  cost += Cost::with_gradient(points.size(0) * one.curvature_cost());
  const at::Tensor sound = diagonal.isfinite().all(1).nonzero().squeeze(1);
  if (sound.size(0) < kFewestPlaces) return funnels;
  points = points.index_select(0, sound);
  diagonal = diagonal.index_select(0, sound);
  funnels.is_concave = (diagonal > 0).all(0);
  if (!funnels.is_concave.any().item<bool>()) return funnels;
  const at::Tensor loc = z.mean(0), scale = z.std(0), log_scales = log_scales_of(diagonal);
  const Effects effects = effects_of_moves(one, points, log_scales, scale, cost);
  std::tie(funnels.drivers, funnels.dependent) = drivers_of(effects, funnels.is_concave);
  const at::Tensor driving = funnels.drivers.nonzero().squeeze(1);
  if (driving.size(0) == 0) return funnels;
  at::Tensor x = some_of(z, std::clamp(kPlacesEach * driving.size(0), kPlaces, kMostPlaces));
  const int64_t places = x.size(0);
  // Each driver reaches as far as any.
  const at::Tensor which =
      driving.index_select(0, at::remainder(at::arange(places), driving.size(0)));
  const double widest = std::asinh(0.5 * kReach);
  const at::Tensor reach = 2 * at::linspace(-widest, widest, places, z.options()).sinh();
  x = x.scatter(1, which.unsqueeze(1),
                (loc.index_select(0, which) + reach * scale.index_select(0, which)).unsqueeze(1));
  cost += Cost::with_gradient(places * (one.curvature_cost() + 2));
  const FarPlaces far = conditional_draws(one, x, funnels.drivers, rng);
  if (far.draws.size(0) < kFewestPlaces) return no_funnels(z);
  funnels.draws = far.draws;
  funnels.knees = knees_of(at::cat({log_scales, far.log_scales}), at::cat({points, far.z}), funnels,
                           effects.of_moves, loc, scale);
  return funnels;
}

}  // namespace crais
