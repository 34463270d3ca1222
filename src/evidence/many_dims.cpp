// The base of a density of many dimensions. Particles would be too few for covariances, and wider
// normals cost nats in proportion to the dimension: curvatures say all.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "evidence/fits.h"
#include "targets/partitioned.h"
#include "targets/transformed.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr double kDifference = 0.01;  // standard deviations between points

/// How much curvatures change, in nats, as each coordinate moves from -1 to 1 standard deviation
/// of N(loc, root root^T) along its regression line, a row of `lines` [D,D]: [D]. The curvature is
/// that along one direction across it, in which all others have a part. Cost: 4 D gradients.
at::Tensor changes_across(const Target& one, const at::Tensor& loc, const at::Tensor& root,
                          const at::Tensor& lines, at::Generator& rng) {
  const at::Tensor unit = root / root.norm(2, {1}, /*keepdim=*/true);
  const at::Tensor e = at::randn({root.size(0)}, rng, at::kDouble).sign();
  const at::Tensor across = at::matmul(e - at::mv(unit, e).unsqueeze(1) * unit, root.t());
  std::vector<at::Tensor> changes;
  for (int64_t j = 0; j < root.size(0); j += kManyDims) {
    stop_if_interrupted();
    const at::Tensor line = lines.slice(0, j, j + kManyDims),
                     step = kDifference * across.slice(0, j, j + kManyDims);
    const auto curvature = [&](const at::Tensor& z) {
      return ((At(one, z - step).evaluate().second - At(one, z + step).evaluate().second) * step)
          .sum(1);
    };
    changes.push_back((curvature(loc + line) / curvature(loc - line)).log().abs());
  }
  return at::cat(changes).nan_to_num(0, 0, 0);
}

/// The coupling of all coordinates to one driver: that along whose regression line in `q`
/// curvatures change most. Places on this line show how scales, given all others, and means depend
/// on it. Null if the density is not concave there.                          [Rue et al. 2009]
std::shared_ptr<const Coupling> coupling_of(const Target& one, const AffineMap& q,
                                            at::Generator& rng, Cost& cost) {
  const int64_t dim = one.dim();
  const at::Tensor loc = on_cpu(q.loc())[0], root = on_cpu(q.matrix())[0],
                   scale = root.norm(2, {1}),
                   lines = at::matmul(root, root.t()) / scale.unsqueeze(1);
  const at::Tensor driver = changes_across(one, loc, root, lines, rng).argmax().view({1}),
                   rest = (at::arange(dim) != driver).nonzero().squeeze(1);
  const at::Tensor x = at::arange(-2, 3, loc.options()).unsqueeze(1),  // standard deviations
      line = lines.index_select(0, driver), places = loc + x * line;
  // Draws of the rest, in pairs: at its mean a density may not be concave.
  at::Tensor noise = at::matmul(at::randn({2, dim}, rng, loc.options()), root.t());
  noise = noise - at::matmul(noise.index_select(1, driver) / scale.index_select(0, driver), line);
  at::Tensor precision = at::zeros({x.size(0), dim, dim}, loc.options()),
             slope = at::zeros_like(places);
  for (const at::Tensor& draw : at::cat({noise, -noise}).unbind()) {
    const At here(one, places + draw);
    precision += 0.25 * here.curvature();
    slope += 0.25 * here.evaluate().second;
  }
  precision = precision.index_select(1, rest).index_select(2, rest);
  cost += Cost::with_gradient(4 * dim + 4 * x.size(0) * (one.curvature_cost() + 1));
  const auto factored = at::linalg_cholesky_ex(precision);
  if ((std::get<1>(factored) != 0).any().item<bool>()) return {};
  const at::Tensor rise = slope.index_select(1, rest).unsqueeze(2);
  const at::Tensor modes =  // by a step of Newton's method
      places.index_select(1, rest) + at::cholesky_solve(rise, std::get<0>(factored)).squeeze(2);
  const auto weights = [&](const at::Tensor& bent, const at::Tensor& wanted) {
    return std::get<0>(at::linalg_lstsq(at::cat({at::ones_like(x), x, bent}, 1), wanted)).t();
  };
  const at::Tensor mean = weights(Coupling::bow(x), modes);
  at::Tensor log_scale =
      weights(Coupling::knee(x), -0.5 * precision.diagonal(0, 1, 2).log()).contiguous();
  log_scale.select(1, 0).zero_();
  if (!mean.isfinite().all().item<bool>()) return {};
  return std::make_shared<Coupling>(rest, driver, loc.index_select(0, driver),
                                    scale.index_select(0, driver), at::zeros({0}, loc.options()),
                                    mean, log_scale, at::zeros({dim - 1, 2}, loc.options()),
                                    at::zeros({dim - 1}, loc.options()));
}

/// `q` in the coordinates of `bijection`, by its slopes at the middle.
AffineMap seen_in(const Bijection& bijection, const AffineMap& q) {
  const at::Tensor loc = on_cpu(q.loc())[0], columns = on_cpu(q.matrix())[0].t();
  const at::Tensor u = bijection.to_u(loc),
                   slopes = (bijection.to_u(loc + kDifference * columns) - u) / kDifference;
  const at::Tensor root = at::linalg_cholesky(at::matmul(slopes.t(), slopes));
  return {u.unsqueeze(0).to(q.options()), root.unsqueeze(0).to(q.options())};
}

/// N(loc, root root^T) of the coordinates, with heavy tails of those in `reaches` [D].
std::shared_ptr<const Bijection> heavy_tails(const AffineMap& q, const at::Tensor& reaches) {
  const at::Tensor scale = on_cpu(q.matrix()).norm(2, {2});
  const at::Tensor shape = at::special_ndtri(at::linspace(0.01, 0.99, 99, at::kDouble));
  return fit_spline(on_cpu(q.loc()) + shape.unsqueeze(1) * scale, {1, reaches});
}

}  // namespace

Base fit_many_dims(const Target& one, const BaseOptions& options, int64_t draws,
                   at::Generator& rng) {
  Cost cost;
  auto in = one.shared();
  const at::Tensor same = fill_normal(at::empty({1, draws, one.dim()}, one.options()), rng);
  const auto nearest = [&](std::unique_ptr<BaseRule> rule, const NearestOptions& how) {
    Base base = make_variational(std::move(rule), how)->build(*in, rng);
    cost += base.cost;
    return base;
  };
  const auto refined = [&](const AffineMap& q, int64_t rounds = 8) {
    return nearest(make_given([&](const Target&) { return q; }), {.rounds = rounds});
  };
  const auto bound = [&](const Base& base) {
    const int64_t parts = base.map.num_problems();
    const Partition all{at::zeros({parts}, in->options().dtype(at::kLong)), base.log_share(), 1};
    const at::Tensor e = same.expand({parts, -1, -1});
    const at::Tensor height =
        PartitionedTarget(*in, base.map, all).log_density(base.map.to_z(e)).nan_to_num(-INFINITY);
    cost += Cost{parts * draws, 0};
    return at::logsumexp(evidence_bound(height, e, base.map), 0).item<double>();
  };
  // Curvatures are dear, and the mean alone is worth most of the gain.
  Base best = nearest(make_modes({}, options), {.pairs = 64, .with_curvatures = false});
  if (!is_nearly_normal(one, best, draws, rng, cost)) {
    double highest = bound(best);
    const auto take = [&](Base&& base) {
      const double its = bound(base);
      if (!(its > highest + kWorthwhile)) return false;
      best = std::move(base);
      highest = its;
      return true;
    };
    // A mode may have no mass (a scale of 0, say), and draws of all of the prior show no way.
    std::vector<std::pair<double, double>> starts;  // bounds and widths
    for (const double width : {1.0, 0.5, 0.2, 0.1})
      starts.emplace_back(bound(Base(one.prior_base().widened(width))), width);
    const double width = std::max_element(starts.begin(), starts.end())->second;
    take(refined(one.prior_base().widened(width), std::max<int64_t>(2, 12'000 / one.dim())));
    take(refined(best.main_parts()));
    at::Tensor drivers = at::zeros({one.dim()}, at::kBool);
    std::shared_ptr<const Bijection> whole;
    while (const auto found = coupling_of(*in, best.main_parts(), rng, cost)) {
      const auto coupling = found->to(in->options());
      in = transformed(in, coupling);
      if (!take(refined(seen_in(*found, best.main_parts())))) break;
      whole = whole ? std::make_shared<Composition>(whole, coupling) : coupling;
      drivers = drivers | found->drives();
    }
    if (whole) {
      const auto tails = heavy_tails(best.map, drivers);
      best.map = seen_in(*tails, best.map);
      best.bijection = std::make_shared<Composition>(whole, tails->to(in->options()));
    }
  }
  best.cost = cost;
  return best;
}

}  // namespace crais
