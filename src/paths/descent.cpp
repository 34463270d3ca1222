#include "paths/descent.h"

#include <tuple>

namespace crais {
namespace {

constexpr int64_t kNodes = 385;  // nodes of a table

/// w x, and 0 where w is 0, even if x is infinite.
at::Tensor times(const at::Tensor& w, const at::Tensor& x) { return at::where(w == 0, 0.0, w * x); }

/// h and its slope in [0, 1] at x [R,M], by the tables [3,C,N] at `rows` [R] (default: a table for
/// each row of x, or one for all): cubic Hermite between nodes, linear outside them. Both h and
/// kappa - h rise everywhere.
std::pair<at::Tensor, at::Tensor> evaluate(const at::Tensor& tables, const at::Tensor& x,
                                           const at::Tensor& rows = {}) {
  const int64_t nodes = tables.size(2);
  const at::Tensor index = rows.defined() ? rows : at::arange(tables.size(1)).expand({x.size(0)});
  const at::Tensor right =
      at::searchsorted(tables[0].index_select(0, index), x).clamp(1, nodes - 1) +
      nodes * index.unsqueeze(1);
  const auto ends = [&](int64_t i) {
    return std::pair{tables[i].take(right - 1), tables[i].take(right)};
  };
  const auto [kappa0, kappa1] = ends(0);
  const auto [h0, h1] = ends(1);
  const auto [w0, w1] = ends(2);
  const at::Tensor width = kappa1 - kappa0, place = (x - kappa0) / width, t = place.clamp(0, 1);
  const at::Tensor rise = (h1 - h0) / width, bend = w0 + w1 - 2 * rise;
  const at::Tensor slope_change = 3 * rise - 2 * w0 - w1;
  const at::Tensor inside = h0 + width * t * (w0 + t * (slope_change + t * bend));
  const at::Tensor slope = (w0 + t * (2 * slope_change + 3 * t * bend)).clamp(0, 1);
  return {inside + times(slope, (place - t) * width), slope};
}

/// Limits the slopes at nodes so that the cubics between nodes rise, given the mean slope d of each
/// cell: at most 3 d for h and, with 1 - w and 1 - d, for kappa - h.       [Fritsch & Carlson 1980]
at::Tensor limited(const at::Tensor& kappa, const at::Tensor& h, const at::Tensor& w) {
  const at::Tensor d = (h.diff(1, 1) / kappa.diff(1, 1)).clamp(0, 1);
  // Both cells of each node; outer cells repeat.
  const at::Tensor left = at::cat({d.slice(1, 0, 1), d}, 1),
                   right = at::cat({d, d.slice(1, -1)}, 1);
  const at::Tensor most = (3 * at::minimum(left, right)).clamp(0, 1);
  const at::Tensor least = (3 * at::maximum(left, right) - 2).clamp(0, 1);
  return at::minimum(at::maximum(w, least), most);
}

/// Solves y + step (g(y) - mean) = v for y [C,M] by Newton's method, or by bisection of a bracket
/// where that is faster.
at::Tensor solve(const Divergence& divergence, const at::Tensor& v, const at::Tensor& mean,
                 const at::Tensor& step) {
  constexpr int kMostIterations = 200;
  constexpr double kTolerance = 1e-10;
  const at::Tensor m = mean.unsqueeze(1), dt = step.unsqueeze(1);
  // Neighbours of the point where g(u) = m; the root lies between v and that point.
  const at::Tensor powers = at::pow(2.0, at::linspace(-4, 40, 45, at::kDouble));
  const at::Tensor points = at::cat({-powers.flip(0), powers});
  const at::Tensor above = at::searchsorted(divergence.g(points), mean);
  const auto neighbour = [&](const at::Tensor& index) {
    return points.index_select(0, index.clamp(0, points.size(0) - 1)).unsqueeze(1);
  };
  const at::Tensor least = neighbour(above - 1), most = neighbour(above);
  at::Tensor low = at::minimum(v, least), high = at::maximum(v, most);
  at::Tensor y = at::minimum(at::maximum(v, least), most);
  at::Tensor last_move = high - low;
  for (int i = 0; i < kMostIterations; ++i) {
    const at::Tensor excess = y - v + times(dt, divergence.g(y) - m);
    low = at::where(excess <= 0, y, low);
    high = at::where(excess >= 0, y, high);
    const at::Tensor newton = y - excess / (1 + times(dt, divergence.slope(y)));
    const at::Tensor good =
        (newton >= low) & (newton <= high) & ((newton - y).abs() <= 0.5 * last_move);
    const at::Tensor next = at::where(good, newton, 0.5 * (low + high));
    last_move = (next - y).abs();
    y = next;
    if ((last_move <= kTolerance * (1 + y.abs())).all().item<bool>()) break;
  }
  return y;
}

const Enrol<PathRegistry> kEnrolDescent(
    "f:DIVERGENCE[,knots=N]",
    "steepest descent of a divergence, by at most N (512) steps of a pilot", "f:jensen-shannon",
    [](Spec& spec) {
      const std::string divergence = spec.word("divergence");
      return std::make_unique<DescentPath>(
          DivergenceRegistry::instance().make("divergence", divergence), spec.text(),
          spec.integer("knots", 1, 10'000, 512));
    });

}  // namespace

std::shared_ptr<DescentPath> DescentPath::start(const at::Tensor& range) const {
  auto path = std::make_shared<DescentPath>(*this);
  const at::Tensor fraction = at::linspace(0, 1, kNodes, range.options());
  const at::Tensor kappa = at::lerp(range[0].unsqueeze(1), range[1].unsqueeze(1), fraction);
  path->constants = range;
  path->knots_ = {at::stack({kappa, at::zeros_like(kappa), at::zeros_like(kappa)})};
  return path;
}

void DescentPath::descend(const at::Tensor& step) {
  constexpr double kUnit = 0.1;  // nodes are kUnit sinh(x) from the middle, evenly spaced in x
  const at::Tensor &now = knots_.back(), log_r = step[0].unsqueeze(1), dt = step[2].unsqueeze(1);
  // Particles are where v is about 0, and most divergences bend there.
  const at::Tensor v = (now[0] - now[1] - log_r).contiguous();
  const at::Tensor right = at::searchsorted(v, at::zeros_like(log_r)).clamp(1, kNodes - 1);
  const at::Tensor v0 = v.gather(1, right - 1), part = -v0 / (v.gather(1, right) - v0);
  const at::Tensor middle = at::lerp(now[0].gather(1, right - 1), now[0].gather(1, right),
                                     part.nan_to_num(0.5).clamp(0, 1));
  const at::Tensor ends = ((constants.slice(0, 0, 2) - middle.t()) / kUnit).asinh().unsqueeze(2);
  const at::Tensor nodes =
      middle + kUnit * at::lerp(ends[0], ends[1], at::linspace(0, 1, kNodes, at::kDouble)).sinh();
  const auto [h, w] = evaluate(now, nodes);
  const at::Tensor y = solve(divergence(), nodes - h - log_r, step[1], step[2]);
  const at::Tensor bend = times(dt, divergence().slope(y));
  knots_.push_back(
      at::stack({nodes, nodes - y, limited(nodes, nodes - y, (w + bend) / (1 + bend))}));
  constants = at::cat({constants, step});
}

void DescentPath::finish() {
  for (at::Tensor& knot : knots_)
    knot[1] -= evaluate(knot, at::zeros({knot.size(1), 1}, at::kDouble)).first;
  const at::Tensor kappa = knots_.front()[0];
  knots_.push_back(at::stack({kappa, kappa, at::ones_like(kappa)}));
  learned_ = at::stack(knots_, 2);
  knots_.clear();
  const at::Tensor dtheta = constants.slice(0, 4, {}, 3);
  num_knots_ = 1 + (dtheta > 0).sum(0).to(at::kDouble);
  theta_ = at::constant_pad_nd(dtheta.cumsum(0), {0, 0, 1, 0}).t().contiguous();
}

std::shared_ptr<const DescentPath> DescentPath::replay(const at::Tensor& of) const {
  const int64_t rows = of.size(0) - 2;
  if (rows < 3 || rows % 3 != 0 || rows / 3 > max_knots) return nullptr;
  const at::Tensor range = of.slice(0, 0, 2), steps = of.slice(0, 2).view({-1, 3, of.size(1)}),
                   dtheta = steps.select(1, 2), moves = dtheta > 0;
  const at::Tensor is_descent =
      ((of.abs() < 1e15).all() & (range[0] < range[1]).all() & (dtheta >= 0).all() &
       moves[0].all() & (moves.slice(0, 0, -1) | ~moves.slice(0, 1)).all());
  if (!is_descent.item<bool>()) return nullptr;
  const auto path = start(range);
  for (const at::Tensor& step : steps.unbind()) path->descend(step);
  path->finish();
  return path;
}

std::shared_ptr<const DescentPath> DescentPath::select(const at::Tensor& index) const {
  auto part = std::make_shared<DescentPath>(*this);
  if (constants.size(1) == 1) return part;
  for (at::Tensor* x : {&part->constants, &part->learned_}) *x = x->index_select(1, index.cpu());
  for (at::Tensor* x : {&part->num_knots_, &part->theta_}) *x = x->index_select(0, index.cpu());
  return part;
}

PathPoint DescentPath::at(const at::Tensor& beta, const at::Tensor& log_q0,
                          const at::Tensor& log_gamma) const {
  TORCH_CHECK(constants.defined(), "path ", name, ": a pilot has to learn it first");
  const at::Tensor kappa = (log_gamma - log_q0).cpu().contiguous();
  at::Tensor h, w;
  if (needs_learning()) {
    std::tie(h, w) = evaluate(knots_.back(), kappa);
  } else {
    const int64_t tables = learned_.size(2);
    const at::Tensor first = tables * at::arange(num_knots_.size(0), at::kDouble);
    const at::Tensor place = beta.cpu().select(1, 0).expand({kappa.size(0)}) * num_knots_;
    const at::Tensor knot = at::minimum(place.floor(), num_knots_ - 1);
    // After its last knot a column that ended early has the target.
    const at::Tensor next = at::where(knot + 1 < num_knots_, knot + 1, tables - 1.0);
    const at::Tensor rows = at::cat({first + knot, first + next}).to(at::kLong);
    const auto [both, slopes] = evaluate(learned_.flatten(1, 2), kappa.repeat({2, 1}), rows);
    const at::Tensor part = (place - knot).unsqueeze(1);
    const auto h_of = both.chunk(2), w_of = slopes.chunk(2);
    h = times(1 - part, h_of[0]) + times(part, h_of[1]);
    w = (1 - part) * w_of[0] + part * w_of[1];
  }
  const at::Device device = log_q0.device();
  const at::Tensor is_target = (beta == 1).to(device);  // exactly; at the base h is 0
  w = at::where(is_target, 1.0, w.to(device));
  return {at::where(is_target, log_gamma, log_q0 + h.to(device)), 1 - w, w};
}

at::Tensor DescentPath::advance(const at::Tensor& beta_now, const at::Tensor& log_time) const {
  const at::Tensor beta = beta_now.cpu(), time = log_time.cpu().exp();
  const at::Tensor clock = theta_.expand({beta.size(0), -1}).contiguous();
  const at::Tensor last = (num_knots_ - 1).expand_as(beta);
  const auto theta_at = [&](const at::Tensor& knot) {
    return clock.gather(1, knot.to(at::kLong).clamp(0, clock.size(1) - 1).unsqueeze(1)).squeeze(1);
  };
  // From the last knot to the target, v shrinks by exp(-f''(1) theta), its rate near the target.
  const double curvature = divergence().slope(at::zeros({}, at::kDouble)).item<double>();
  const at::Tensor place = beta * num_knots_, knot = at::minimum(place.floor(), last);
  const at::Tensor part = place - knot, from = theta_at(knot);
  const at::Tensor now = at::where(knot == last, from - at::log1p(-part) / curvature,
                                   from + part * (theta_at(knot + 1) - from));
  const at::Tensor then = now + time;
  const at::Tensor reached = at::minimum(
      at::searchsorted(clock, then.unsqueeze(1), false, /*right=*/true).squeeze(1).to(last) - 1,
      last);
  const at::Tensor since = then - theta_at(reached);
  const at::Tensor done = at::where(reached == last, -at::expm1(-curvature * since),
                                    since / (theta_at(reached + 1) - theta_at(reached)));
  return ((reached + done) / num_knots_).to(beta_now.device());
}

}  // namespace crais
