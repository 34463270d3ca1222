#include "bases/necks.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/coupling.h"

namespace crais {
namespace {

constexpr int64_t kFewest = 8;  // points or places that say something

/// `count` of the rows of z, evenly spaced.
at::Tensor some_of(const at::Tensor& z, int64_t count) {
  const auto last = static_cast<double>(z.size(0) - 1);
  return z.index_select(
      0, at::linspace(0, last, std::min(count, z.size(0)), at::kDouble).round().to(at::kLong));
}

/// The density at points z [M,D].
class At {
 public:
  At(const Target& one, const at::Tensor& z)
      : target_(one.select(at::zeros({z.size(0)}, one.options().dtype(at::kLong)))),
        z_(z.to(one.options())) {}

  at::Tensor curvature() const { return on_host(target_->curvature(z_)); }  // [M,D,D]
  /// log gamma [M] and its gradient [M,D].
  std::pair<at::Tensor, at::Tensor> evaluate() const {
    const Evaluation at = target_->evaluate(z_.unsqueeze(1));
    return {on_host(at.log_density).squeeze(1), on_host(at.grad).squeeze(1)};
  }

 private:
  static at::Tensor on_host(const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); }

  std::shared_ptr<const Target> target_;
  at::Tensor z_;
};

/// `columns` [M,C] less what the span [M,S] explains of them.
at::Tensor unexplained(const at::Tensor& columns, const at::Tensor& span) {
  const at::Tensor basis = std::get<0>(at::linalg_qr(span));
  return columns - at::matmul(basis, at::matmul(basis.t(), columns));
}

/// The coordinates on which log-scales [M,D] depend most, chosen one after another, and those that
/// depend on them: [D] bool each. `x` [M,D] are the points, of variance 1. A driver must explain
/// kWorth nats: the sum of mean squares that it explains of coordinates that are no drivers.
std::pair<at::Tensor, at::Tensor> drivers_of(const at::Tensor& log_scales, const at::Tensor& x) {
  constexpr double kWorth = 0.02, kSignificant = 10;  // nats; a squared t-statistic
  constexpr double kDepends = 0.01;                   // nats of one coordinate
  constexpr int64_t kPointsPerWeight = 3;
  const int64_t points = x.size(0);
  at::Tensor chosen = at::zeros({x.size(1)}, x.options());
  at::Tensor span = at::ones({points, 1}, x.options());
  const at::Tensor others = 1 - at::eye(x.size(1), x.options());
  while (span.size(1) * kPointsPerWeight < points) {
    const at::Tensor y = unexplained(log_scales, span), rest = unexplained(x, span);
    const at::Tensor counts = others * (1 - chosen).unsqueeze(1);
    const at::Tensor unit = rest / rest.norm(2, 0).clamp_min(1e-9);
    const at::Tensor explained =
        (at::matmul(y.t(), unit).square() * counts).sum(0) / static_cast<double>(points);
    const at::Tensor whole = (y.square().mean(0).unsqueeze(1) * counts).sum(0);
    const at::Tensor share = (explained / whole.clamp_min(1e-300)).clamp_max(0.999);
    const at::Tensor squared_t =
        share / (1 - share) * static_cast<double>(points - span.size(1) - 1);
    const auto [most, best] = (explained * (squared_t > kSignificant) * (1 - chosen)).max(0);
    if (!(most.item<double>() > kWorth)) break;
    const int64_t driver = best.item<int64_t>();
    chosen[driver] = 1;
    const at::Tensor column = x.slice(1, driver, driver + 1);
    span = at::cat({span, column, Coupling::knee(column)}, 1);
  }
  const at::Tensor explained =
      unexplained(log_scales, at::ones({points, 1}, x.options())) - unexplained(log_scales, span);
  return {chosen > 0, (explained.square().mean(0) > kDepends) & (chosen == 0)};
}

/// Rough draws with the drivers at x [M,D]: the other coordinates are drawn from normals at the
/// ends of two steps of Newton's method that share a curvature.
at::Tensor conditional_draws(const Target& one, const at::Tensor& x, const at::Tensor& drivers,
                             at::Generator& rng) {
  constexpr int64_t kCopies = 16;  // at each place
  constexpr double kLeast = 8;     // nats below the highest place along the drivers
  const at::Tensor rest = drivers.logical_not().nonzero().squeeze(1);
  const At start(one, x);
  const at::Tensor precision = start.curvature().index_select(1, rest).index_select(2, rest);
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
  const at::Tensor of_drivers =
      (height + climbed - root.diagonal(0, 1, 2).log().sum(1))
          .masked_fill(failed != 0, -std::numeric_limits<double>::infinity())
          .nan_to_num(-std::numeric_limits<double>::infinity());
  const at::Tensor e = at::randn({x.size(0), rest.size(0), kCopies}, rng, x.options());
  const at::Tensor about =
      at::linalg_solve_triangular(root.transpose(1, 2), e, /*upper=*/true).transpose(1, 2);
  const at::Tensor draws =
      mode.unsqueeze(1).expand({-1, kCopies, -1}).index_add(2, rest, about);  // [M,kCopies,D]
  const at::Tensor kept =
      (of_drivers > of_drivers.max() - kLeast) & draws.isfinite().flatten(1).all(1);
  return draws.index_select(0, kept.nonzero().squeeze(1));
}

}  // namespace

Necks no_necks(const at::Tensor& z) {
  const at::Tensor none = at::zeros({z.size(1)}, at::kBool);
  return {none, none, none, z.slice(0, 0, 0).unsqueeze(1)};
}

Necks find_necks(const Target& one, const at::Tensor& z, at::Generator& rng, Cost& cost) {
  constexpr int64_t kPoints = 32, kPlaces = 64;
  constexpr double kReach = 30;  // standard deviations of a driver
  Necks necks = no_necks(z);
  at::Tensor points = some_of(z, kPoints);
  at::Tensor diagonal = At(one, points).curvature().diagonal(0, 1, 2);
  cost += Cost::with_gradient(points.size(0) * one.curvature_cost());
  const at::Tensor sound = diagonal.isfinite().all(1).nonzero().squeeze(1);
  if (sound.size(0) < kFewest) return necks;
  points = points.index_select(0, sound);
  diagonal = diagonal.index_select(0, sound);
  necks.is_concave = (diagonal > 0).all(0);
  const at::Tensor loc = z.mean(0), scale = z.std(0);
  // Of each coordinate given all others.
  const at::Tensor log_scales =
      at::where(necks.is_concave, -0.5 * diagonal.clamp_min(1e-300).log(), 0.0);
  std::tie(necks.drivers, necks.dependent) = drivers_of(log_scales, (points - loc) / scale);
  const at::Tensor driving = necks.drivers.nonzero().squeeze(1);
  if (driving.size(0) == 0) return necks;
  at::Tensor x = some_of(z, kPlaces);
  const int64_t places = x.size(0);
  const double widest = std::asinh(0.5 * kReach);
  const at::Tensor reach = 2 * at::linspace(-widest, widest, places, z.options()).sinh();
  const at::Tensor which =
      driving.index_select(0, at::remainder(at::arange(places), driving.size(0)));
  x = x.scatter(1, which.unsqueeze(1),
                (loc.index_select(0, which) + reach * scale.index_select(0, which)).unsqueeze(1));
  cost += Cost::with_gradient(places * (one.curvature_cost() + 2));
  necks.draws = conditional_draws(one, x, necks.drivers, rng);
  return necks.draws.size(0) < kFewest ? no_necks(z) : necks;
}

}  // namespace crais
