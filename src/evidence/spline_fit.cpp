#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "evidence/fits.h"

namespace crais {
namespace {

constexpr double kSame = 1e-6;  // of |z|: knots may become float32

/// K normals for each of D coordinates: [K,D,1].
struct Marginals {
  at::Tensor loc, sd, log_share;
};

/// log(share N(x)) of each normal at x [D,N]: [K,D,N].
at::Tensor log_weighed(const Marginals& normals, const at::Tensor& x) {
  const at::Tensor e = (x - normals.loc) / normals.sd;
  return normals.log_share - normals.sd.log() - 0.5 * e.square() - 0.5 * std::log(2 * M_PI);
}

/// Expectation maximisation from quantiles, for all coordinates x [D,N] of variance 1 at once.
Marginals fit_marginals(const at::Tensor& x, int64_t count) {
  constexpr int kIterations = 40;
  constexpr double kPrior = 3, kFloor = 1e-6;  // draws with the mean variance; of variances
  const auto draws = static_cast<double>(x.size(1)), num = static_cast<double>(count);
  const at::Tensor places = (at::arange(count, x.options()) + 0.5) / num;
  const at::Tensor one = at::ones({count, x.size(0), 1}, x.options());
  Marginals normals{at::quantile(x, places, 1).unsqueeze(2), one / num, -std::log(num) * one};
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor shares = at::softmax(log_weighed(normals, x), 0);
    const at::Tensor total = shares.sum(2, true) + 1e-9;
    normals.loc = (shares * x).sum(2, true) / total;
    const at::Tensor scatter = (shares * (x - normals.loc).square()).sum(2, true);
    const at::Tensor pooled = scatter.sum(0, true) / draws;
    normals.sd = ((scatter + kPrior * pooled) / (total + kPrior) + kFloor).sqrt();
    normals.log_share = (total / total.sum(0, true)).log();
  }
  return normals;
}

/// The normals beside a wide one of a small share. Densities between modes are higher than the
/// normals of the modes say, and chains from there would have great weights.     [Hesterberg 1995]
Marginals defended(const Marginals& normals) {
  constexpr double kShare = 0.01;
  const at::Tensor one = at::ones_like(normals.loc.slice(0, 0, 1));
  return {at::cat({normals.loc, 0 * one}), at::cat({normals.sd, one}),
          at::cat({normals.log_share + std::log1p(-kShare), std::log(kShare) * one})};
}

/// How many normals describe each coordinate best: [D] int64.
at::Tensor best_counts(const at::Tensor& x, int64_t most) {
  constexpr double kAsGood = 0.03;  // nats
  const at::Tensor train = x.slice(1, 0, {}, 2), test = x.slice(1, 1, {}, 2);
  at::Tensor best, count;
  for (int64_t num = 1; num <= most; ++num) {
    const at::Tensor height =
        at::logsumexp(log_weighed(fit_marginals(train, num), test), 0).mean(1);
    const at::Tensor better = num == 1 ? at::ones_like(height, at::kBool) : height > best + kAsGood;
    count = num == 1 ? at::ones_like(height, at::kLong) : count.masked_fill(better, num);
    best = num == 1 ? height : at::where(better, height, best);
  }
  return count;
}

/// A knot of a spline.
struct Knot {
  double u, z, slope;
};

/// The tail of a generalised Pareto distribution.
struct Pareto {
  double shape = 0, scale = 0;  // P(z > x) falls as x^(-1/shape); shape 0: there is no heavy tail

  /// The most probable one for `excess` [N] > 0, unless it may as well be light.  [Grimshaw 1993]
  static Pareto fit(const at::Tensor& excess) {
    constexpr int64_t kFewest = 20, kGrid = 200;
    // In standard errors; and a shape: draws must not overflow a density of a log-scale.
    constexpr double kErrors = 2, kHeaviest = 0.5;
    const auto num = static_cast<double>(excess.numel());
    if (num < kFewest) return {};
    const at::Tensor rate = at::logspace(-3, 3, kGrid, 10, excess.options()) / excess.median();
    const at::Tensor shape = at::log1p(rate.unsqueeze(1) * excess).mean(1);
    const int64_t best = (-(shape / rate).log() - shape).argmax().item<int64_t>();
    const double found = std::min(shape[best].item<double>(), kHeaviest);
    if (found < kErrors * (1 + found) / std::sqrt(num)) return {};
    return {found, found / rate[best].item<double>()};
  }
};

/// Adds a knot, unless it would be one with the last knot or is no knot.
void add(std::vector<Knot>& knots, const Knot& knot) {
  constexpr double kNear = 1e-3;  // of u
  if (!std::isfinite(knot.u) || !std::isfinite(knot.slope) || !(knot.slope > 0)) return;
  if (knots.empty() ||
      (knot.u > knots.back().u + kNear && knot.z > knots.back().z + kSame * std::abs(knot.z)))
    knots.push_back(knot);
}

/// The knots of one coordinate: where Phi(u) is the share of the normals below z.
std::vector<Knot> knots_of(const at::Tensor& loc, const at::Tensor& sd, const at::Tensor& share) {
  constexpr double kReach[] = {-4, -2.5, -1.5, -0.75, 0, 0.75, 1.5, 2.5, 4};
  const at::Tensor reach = at::tensor(at::ArrayRef<double>(kReach), loc.options());
  const at::Tensor z = std::get<0>((loc.unsqueeze(1) + sd.unsqueeze(1) * reach).flatten().sort());
  const at::Tensor e = (z.unsqueeze(1) - loc) / sd;
  const at::Tensor below = at::mv(at::special_ndtr(e), share),
                   above = at::mv(at::special_ndtr(-e), share);
  const at::Tensor u =
      at::where(below < above, at::special_ndtri(below), -at::special_ndtri(above));
  const at::Tensor density = at::mv((-0.5 * e.square()).exp() / sd, share);
  const at::Tensor slope = (-0.5 * u.square()).exp() / density;
  std::vector<Knot> knots;
  for (int64_t k = 0; k < z.size(0); ++k)
    add(knots, {u[k].item<double>(), z[k].item<double>(), slope[k].item<double>()});
  return knots;
}

double log_above(double u) { return std::log(0.5 * std::erfc(u * M_SQRT1_2)); }

/// The density of N(0, 1) at u over P(N(0, 1) > u).
double hazard(double u) { return std::exp(-0.5 * u * u - log_above(u)) / std::sqrt(2 * M_PI); }

/// Replaces the knots beyond u = 1.5 by those of a heavy tail, and returns true, if draws z [N] ask
/// for it or if it must have at least the shape `least`: normals that are fitted to draws end
/// where the draws end. A normal u has Pareto's tail there as far as a few draws in a million.
///                                                              [after Hickling & Prangle 2024]
bool continue_tail(std::vector<Knot>& knots, const at::Tensor& z, double least) {
  constexpr double kLeast = 1, kMost = 1.51, kStep = 0.5;  // of u
  constexpr int kKnots = 6;
  const auto last =
      std::find_if(knots.rbegin(), knots.rend(), [](const Knot& knot) { return knot.u < kMost; });
  if (last == knots.rend() || last->u < kLeast) return false;
  const Knot start = *last;
  Pareto tail = Pareto::fit(z.masked_select(z > start.z) - start.z);
  if (tail.shape < least) tail = {least, start.slope / hazard(start.u)};
  if (tail.shape == 0) return false;
  knots.erase(last.base(), knots.end());
  knots.back().slope = tail.scale * hazard(start.u);
  for (int k = 1; k <= kKnots; ++k) {
    const double u = start.u + kStep * k;
    const double growth = std::exp(tail.shape * (log_above(start.u) - log_above(u)));
    add(knots,
        {u, start.z + tail.scale * (growth - 1) / tail.shape, tail.scale * growth * hazard(u)});
  }
  return true;
}

/// `knots` of the coordinate -z.
std::vector<Knot> mirrored(const std::vector<Knot>& knots) {
  std::vector<Knot> mirror;
  for (auto knot = knots.rbegin(); knot != knots.rend(); ++knot)
    mirror.push_back({-knot->u, -knot->z, knot->slope});
  return mirror;
}

}  // namespace

std::shared_ptr<const Spline> fit_spline(const at::Tensor& z, const SplineOptions& options) {
  constexpr double kHeavy = 0.2;  // shape of a tail that draws do not ask for
  const at::Tensor loc = z.mean(0), scale = z.std(0);
  if (!(scale > 0).all().item<bool>() || !z.isfinite().all().item<bool>()) return {};
  const at::Tensor x = ((z - loc) / scale).t().contiguous();
  const at::Tensor count = best_counts(x, options.most_normals);
  const at::Tensor is_heavy =
      options.is_heavy.defined() ? options.is_heavy : at::zeros({z.size(1)}, at::kBool);
  std::vector<int64_t> coordinates;
  std::vector<std::vector<Knot>> splines;
  size_t most = 0;
  for (int64_t d = 0; d < z.size(1); ++d) {
    const int64_t num = count[d].item<int64_t>();
    const Marginals normals = defended(fit_marginals(x.slice(0, d, d + 1), num));
    const at::Tensor unit = scale[d], column = z.select(1, d);
    const double least = is_heavy[d].item<bool>() ? kHeavy : 0;
    std::vector<Knot> knots =
        knots_of(normals.loc.flatten() * unit + loc[d], normals.sd.flatten() * unit,
                 normals.log_share.flatten().exp());
    const bool above = continue_tail(knots, column, least);
    knots = mirrored(knots);
    const bool below = continue_tail(knots, -column, least);
    if ((num == 1 && !above && !below) || knots.size() < 2) continue;
    most = std::max(most, knots.size());
    coordinates.push_back(d);
    splines.push_back(mirrored(knots));
  }
  if (splines.empty()) return {};
  const auto num = static_cast<int64_t>(splines.size()), columns = static_cast<int64_t>(most);
  at::Tensor u = at::empty({num, columns}, z.options()), at_u = at::empty_like(u),
             slope = at::empty_like(u);
  for (int64_t c = 0; c < num; ++c) {
    auto& knots = splines[static_cast<size_t>(c)];
    while (knots.size() < most) {  // the last piece goes on in a line
      const Knot last = knots.back();
      const double step = std::max(1.0, 2 * kSame * std::abs(last.z) / last.slope);
      knots.push_back({last.u + step, last.z + step * last.slope, last.slope});
    }
    for (int64_t k = 0; k < columns; ++k) {
      const Knot& knot = knots[static_cast<size_t>(k)];
      u[c][k] = knot.u;
      at_u[c][k] = knot.z;
      slope[c][k] = knot.slope;
    }
  }
  return std::make_shared<Spline>(z.size(1), at::tensor(coordinates, at::kLong), u, at_u, slope);
}

}  // namespace crais
