#include "paths/descent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace crais {
namespace {

constexpr int64_t kNodes = 192;  // nodes of a table

struct Tilt {
  double h, w;
};

/// w x, and 0 where w is 0, even if x is infinite.
double times(double w, double x) { return w == 0 ? 0.0 : w * x; }
at::Tensor times(const at::Tensor& w, const at::Tensor& x) { return at::where(w == 0, 0.0, w * x); }

/// Function `row` at x. Outside its nodes it is linear with the slope of the nearer node.
Tilt evaluate(const Tilts& tilts, int64_t row, double x) {
  const int64_t nodes = tilts.kappa.size(-1), first = row * nodes;
  const double* begin = tilts.kappa.data_ptr<double>() + first;
  const int64_t right =
      std::clamp<int64_t>(std::lower_bound(begin, begin + nodes, x) - begin, 1, nodes - 1);
  const double *kappa = begin + right - 1, *h = tilts.h.data_ptr<double>() + first + right - 1,
               *w = tilts.w.data_ptr<double>() + first + right - 1;
  const double width = kappa[1] - kappa[0];
  const double place = (x - kappa[0]) / width, t = std::clamp(place, 0.0, 1.0);
  const double rise = (h[1] - h[0]) / width, bend = w[0] + w[1] - 2 * rise;
  const double slope_change = 3 * rise - 2 * w[0] - w[1];
  const double inside = h[0] + width * t * (w[0] + t * (slope_change + t * bend));
  const double slope = std::clamp(w[0] + t * (2 * slope_change + 3 * t * bend), 0.0, 1.0);
  return {inside + times(slope, (place - t) * width), slope};
}

/// The functions of all rows at kappa [C,M].
Tilts evaluate(const Tilts& tilts, const at::Tensor& kappa) {
  const at::Tensor x = kappa.contiguous();
  Tilts found{x, at::empty_like(x), at::empty_like(x)};
  double *h = found.h.data_ptr<double>(), *w = found.w.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Tilt tilt = evaluate(tilts, i / x.size(1), x.data_ptr<double>()[i]);
    h[i] = tilt.h;
    w[i] = tilt.w;
  }
  return found;
}

/// Limits the slopes at nodes so that the cubics between nodes rise, given the mean slope d of each
/// cell: at most 3 d for h and, with 1 - w and 1 - d, for kappa - h.       [Fritsch & Carlson 1980]
Tilts limited(const Tilts& at_nodes) {
  const auto& [kappa, h, w] = at_nodes;
  const at::Tensor d = (h.diff(1, 1) / kappa.diff(1, 1)).clamp(0, 1);
  // Both cells of each node; outer cells repeat.
  const at::Tensor left = at::cat({d.slice(1, 0, 1), d}, 1),
                   right = at::cat({d, d.slice(1, -1)}, 1);
  const at::Tensor most = (3 * at::minimum(left, right)).clamp(0, 1);
  const at::Tensor least = (3 * at::maximum(left, right) - 2).clamp(0, 1);
  return {kappa, h, at::minimum(at::maximum(w, least), most)};
}

/// Solves y + step (g(y) - mean) = v for y [C,M], to `tolerance` or that share of y. Newton's
/// method, with bisection of a bracket where bisection is faster.
at::Tensor solve(const Divergence& divergence, const at::Tensor& v, const at::Tensor& mean,
                 const at::Tensor& step, double tolerance) {
  constexpr int kMostIterations = 200;
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
    if ((last_move <= tolerance * (1 + y.abs())).all().item<bool>()) break;
  }
  return y;
}

/// Rows `of` [C,M] where the rising rows x [C,M] have the values v [C,N], linear between entries.
at::Tensor interpolated(const at::Tensor& x, const at::Tensor& of, const at::Tensor& v) {
  const at::Tensor right = at::searchsorted(x, v).clamp(1, x.size(1) - 1);
  const at::Tensor x0 = x.gather(1, right - 1), x1 = x.gather(1, right);
  const at::Tensor part = ((v - x0) / (x1 - x0)).nan_to_num(0.5).clamp(0, 1);
  return at::lerp(of.gather(1, right - 1), of.gather(1, right), part);
}

/// Nodes among the candidates kappa [C,M] with slopes w, dense where h bends. Neighbouring nodes
/// enclose equal shares of int sqrt|w'|, which bounds the error of a cubic, and partly equal shares
/// of the whole range.
at::Tensor place_nodes(const at::Tensor& kappa, const at::Tensor& w) {
  constexpr double kEven = 0.3;  // share of the nodes that are evenly spaced
  const at::Tensor width = kappa.diff(1, 1), bend = (w.diff(1, 1).abs() * width).sqrt();
  const at::Tensor even = width / width.sum(1, true);
  const at::Tensor total = bend.sum(1, true);
  const at::Tensor share =
      at::where(total > 0, (1 - kEven) * bend / total + kEven * even, even).cumsum(1);
  const at::Tensor until =
      at::cat({at::zeros_like(width.slice(1, 0, 1)), share}, 1) / share.slice(1, -1);
  const at::Tensor targets =
      at::linspace(0, 1, kNodes, kappa.options()).expand({kappa.size(0), kNodes}).contiguous();
  return at::cat({kappa.slice(1, 0, 1), interpolated(until, kappa, targets).slice(1, 1, -1),
                  kappa.slice(1, -1)},
                 1);
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

DescentPath::DescentPath(std::shared_ptr<const Divergence> divergence, std::string spec,
                         int64_t most_knots)
    : Path(std::move(divergence)), name(std::move(spec)), max_knots(most_knots) {}

std::shared_ptr<DescentPath> DescentPath::start(const at::Tensor& range) const {
  auto path = std::make_shared<DescentPath>(*this);
  const at::Tensor none = at::empty({0, range.size(1)}, range.options());
  path->steps = {range, none, none, none};
  path->num_knots_ = at::ones({range.size(1)}, range.options());
  const at::Tensor fraction = at::linspace(0, 1, kNodes, range.options());
  const at::Tensor kappa = at::lerp(range[0].unsqueeze(1), range[1].unsqueeze(1), fraction);
  path->knots_ = {{kappa, at::zeros_like(kappa), at::zeros_like(kappa)}};
  return path;
}

void DescentPath::descend(const at::Tensor& log_ratio, const at::Tensor& mean,
                          const at::Tensor& step) {
  const Tilts& now = knots_.back();
  const at::Tensor log_r = log_ratio.unsqueeze(1), dt = step.unsqueeze(1);
  const auto after = [&](const at::Tensor& kappa, double tolerance) -> Tilts {
    const Tilts before = evaluate(now, kappa);
    const at::Tensor y = solve(divergence(), kappa - before.h - log_r, mean, step, tolerance);
    const at::Tensor bend = times(dt, divergence().slope(y));
    return {kappa, kappa - y, (before.w + bend) / (1 + bend)};
  };
  // Most divergences bend around v = 0. The v of points that are densest there, and the kappa at
  // which v now has that value.
  const at::Tensor y = (0.1 * at::linspace(-6, 6, 97, at::kDouble).sinh()).unsqueeze(0);
  const at::Tensor v =
      (y + (dt * (divergence().g(y) - mean.unsqueeze(1))).nan_to_num(0.0)).contiguous();
  const at::Tensor bending = interpolated((now.kappa - now.h - log_r).contiguous(), now.kappa, v);
  const at::Tensor candidates = std::get<0>(at::cat({now.kappa, bending}, 1).sort(1));
  constexpr double kRough = 1e-2, kExact = 1e-10;
  const at::Tensor nodes = place_nodes(candidates, after(candidates, kRough).w);
  knots_.push_back(limited(after(nodes, kExact)));
  for (const auto& [all, row] :
       {std::pair{&steps.log_ratio, &log_ratio}, {&steps.mean, &mean}, {&steps.step, &step}})
    *all = at::cat({*all, row->unsqueeze(0)});
}

void DescentPath::finish() {
  for (Tilts& knot : knots_)
    knot.h = knot.h - evaluate(knot, at::zeros_like(knot.kappa.slice(1, 0, 1))).h;
  const at::Tensor kappa = knots_.front().kappa;
  knots_.push_back({kappa, kappa, at::ones_like(kappa)});
  num_knots_ = 1 + (steps.step > 0).sum(0).to(at::kDouble);
  theta_ = at::constant_pad_nd(steps.step.cumsum(0), {0, 0, 1, 0}).t().contiguous();
}

std::shared_ptr<const DescentPath> DescentPath::select(const at::Tensor& index) const {
  auto part = std::make_shared<DescentPath>(*this);
  if (num_knots_.size(0) == 1) return part;
  const at::Tensor columns = index.cpu();
  auto& [range, log_ratio, mean, step] = part->steps;
  for (at::Tensor* x : {&range, &log_ratio, &mean, &step}) *x = x->index_select(1, columns);
  for (at::Tensor* x : {&part->num_knots_, &part->theta_}) *x = x->index_select(0, columns);
  for (auto& [kappa, h, w] : part->knots_)
    for (at::Tensor* x : {&kappa, &h, &w}) *x = x->index_select(0, columns);
  return part;
}

PathPoint DescentPath::at(const at::Tensor& beta, const at::Tensor& log_q0,
                          const at::Tensor& log_gamma) const {
  TORCH_CHECK(!knots_.empty(), "path ", name, ": a pilot has to learn it first");
  const int64_t problems = log_q0.size(0), particles = log_q0.size(1);
  const at::Tensor from = log_q0.cpu().contiguous(), to = log_gamma.cpu().contiguous(),
                   betas = beta.cpu().select(1, 0).expand({problems}).contiguous();
  const at::Tensor density = at::empty_like(from), slope = at::empty_like(from);
  const double *q0 = from.data_ptr<double>(), *gamma = to.data_ptr<double>();
  double *log_density = density.data_ptr<double>(), *w = slope.data_ptr<double>();
  for (int64_t p = 0; p < problems; ++p) {
    const int64_t column = num_knots_.size(0) == 1 ? 0 : p;
    const double b = betas.data_ptr<double>()[p], knots = num_knots_.data_ptr<double>()[column];
    const double place = needs_learning() ? knots : b * knots;
    const double knot = std::min(knots - 1, std::floor(place)), part = place - knot;
    const auto table = [&](double at_knot) -> const Tilts& {
      return at_knot >= knots ? knots_.back() : knots_[static_cast<size_t>(at_knot)];
    };
    const Tilts &low = table(knot), &high = table(knot + 1);
    for (int64_t i = p * particles; i < (p + 1) * particles; ++i) {
      const double kappa = gamma[i] - q0[i];
      const Tilt before = evaluate(low, column, kappa), after = evaluate(high, column, kappa);
      const double h = times(1 - part, before.h) + times(part, after.h);
      log_density[i] = b == 0 ? q0[i] : b == 1 ? gamma[i] : q0[i] + h;
      w[i] = b == 0 ? 0 : b == 1 ? 1 : (1 - part) * before.w + part * after.w;
    }
  }
  return {density.to(log_q0.device()), (1 - slope).to(log_q0.device()), slope.to(log_q0.device())};
}

at::Tensor DescentPath::advance(const at::Tensor& beta_now, const at::Tensor& log_time) const {
  const at::Tensor beta = beta_now.cpu(), time = log_time.cpu().exp();
  const at::Tensor theta = theta_.expand({beta.size(0), -1}).contiguous();
  const at::Tensor last = (num_knots_ - 1).expand_as(beta);
  const auto theta_at = [&](const at::Tensor& knot) {
    return theta.gather(1, knot.to(at::kLong).clamp(0, theta.size(1) - 1).unsqueeze(1)).squeeze(1);
  };
  // From the last knot to the target, v shrinks by exp(-f''(1) theta), its rate near the target.
  const double curvature = divergence().slope(at::zeros({}, at::kDouble)).item<double>();
  const at::Tensor place = beta * num_knots_, knot = at::minimum(place.floor(), last);
  const at::Tensor part = place - knot, from = theta_at(knot);
  const at::Tensor now = at::where(knot == last, from - at::log1p(-part) / curvature,
                                   from + part * (theta_at(knot + 1) - from));
  const at::Tensor then = now + time;
  const at::Tensor reached = at::minimum(
      at::searchsorted(theta, then.unsqueeze(1), false, /*right=*/true).squeeze(1).to(last) - 1,
      last);
  const at::Tensor since = then - theta_at(reached);
  const at::Tensor done = at::where(reached == last, -at::expm1(-curvature * since),
                                    since / (theta_at(reached + 1) - theta_at(reached)));
  return ((reached + done) / num_knots_).to(beta_now.device());
}

}  // namespace crais
