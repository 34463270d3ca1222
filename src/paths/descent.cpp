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

/// The functions of R rows at kappa [R,M].
Tilts evaluate(const Tilts& tilts, const at::Tensor& kappa) {
  const at::Tensor x = kappa.contiguous();
  Tilts found{x, at::empty_like(x), at::empty_like(x)};
  const double* from = x.data_ptr<double>();
  double *h = found.h.data_ptr<double>(), *w = found.w.data_ptr<double>();
  for (int64_t i = 0; i < kappa.numel(); ++i) {
    const Tilt tilt = evaluate(tilts, i / kappa.size(1), from[i]);
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
    const at::Tensor excess = y - v + at::where(dt == 0, 0.0, dt * (divergence.g(y) - m));
    low = at::where(excess <= 0, y, low);
    high = at::where(excess >= 0, y, high);
    const at::Tensor newton = y - excess / (1 + at::where(dt == 0, 0.0, dt * divergence.slope(y)));
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

}  // namespace

Descent::Descent(std::shared_ptr<const Divergence> divergence, const at::Tensor& kappas)
    : range(kappas), divergence_(std::move(divergence)) {
  const at::Tensor fraction = at::linspace(0, 1, kNodes, range.options());
  const at::Tensor kappa = at::lerp(range[0].unsqueeze(1), range[1].unsqueeze(1), fraction);
  knots.push_back({kappa, at::zeros_like(kappa), at::zeros_like(kappa)});
}

Tilts Descent::at(const at::Tensor& kappa) const {
  const Tilts found = evaluate(knots.back(), range.size(1) == 1 ? kappa.reshape({1, -1}) : kappa);
  return {kappa, found.h.view_as(kappa), found.w.view_as(kappa)};
}

void Descent::advance(const at::Tensor& log_r, const at::Tensor& m, const at::Tensor& step) {
  const Tilts& now = knots.back();
  const at::Tensor dt = step.unsqueeze(1);
  const auto after = [&](const at::Tensor& kappa, double tolerance) -> Tilts {
    const Tilts before = evaluate(now, kappa);
    const at::Tensor v = kappa - before.h - log_r.unsqueeze(1);
    const at::Tensor y = solve(*divergence_, v, m, step, tolerance);
    const at::Tensor bend = at::where(dt == 0, 0.0, dt * divergence_->slope(y));
    return {kappa, kappa - y, (before.w + bend) / (1 + bend)};
  };
  // Most divergences bend around v = 0. The v of points that are densest there, and the kappa at
  // which v now has that value.
  const at::Tensor y = (0.1 * at::linspace(-6, 6, 97, at::kDouble).sinh()).unsqueeze(0);
  const at::Tensor v =
      (y + (dt * (divergence_->g(y) - m.unsqueeze(1))).nan_to_num(0.0)).contiguous();
  const at::Tensor v_now = (now.kappa - now.h - log_r.unsqueeze(1)).contiguous();
  const at::Tensor bending = interpolated(v_now, now.kappa, v);
  const at::Tensor candidates = std::get<0>(at::cat({now.kappa, bending}, 1).sort(1));
  constexpr double kRough = 1e-2, kExact = 1e-10;
  const at::Tensor nodes = place_nodes(candidates, after(candidates, kRough).w);
  knots.push_back(limited(after(nodes, kExact)));
  log_ratio.push_back(log_r);
  mean.push_back(m);
  steps.push_back(step);
}

Descent Descent::select(const at::Tensor& index) const {
  Descent part = *this;
  if (range.size(1) == 1) return part;
  const at::Tensor columns = index.cpu();
  part.range = range.index_select(1, columns);
  for (auto* list : {&part.log_ratio, &part.mean, &part.steps})
    for (at::Tensor& x : *list) x = x.index_select(0, columns);
  for (Tilts& knot : part.knots)
    for (at::Tensor* x : {&knot.kappa, &knot.h, &knot.w}) *x = x->index_select(0, columns);
  return part;
}

DescentPath::DescentPath(std::shared_ptr<const Divergence> divergence, DescentOptions options)
    : Path(std::move(divergence)), options_(std::move(options)) {}

std::shared_ptr<const DescentPath> DescentPath::along(const Descent& descent) const {
  std::vector<at::Tensor> kappa, h, w;
  for (const Tilts& knot : descent.knots) {
    const at::Tensor origin = at::zeros_like(knot.kappa.slice(1, 0, 1));
    kappa.push_back(knot.kappa);
    h.push_back(knot.h - evaluate(knot, origin).h);
    w.push_back(knot.w);
  }
  for (auto* of_target : {&kappa, &h}) of_target->push_back(descent.knots.front().kappa);
  w.push_back(at::ones_like(w.front()));
  const at::Tensor step = at::stack(descent.steps);
  auto path = std::make_shared<DescentPath>(*this);
  path->descent_ = std::make_shared<const Descent>(descent);
  path->num_knots_ = 1 + (step > 0).sum(0).to(at::kDouble);
  path->theta_ = at::cat({at::zeros_like(step.slice(0, 0, 1)), step.cumsum(0)}).t().contiguous();
  path->tables_ = {at::stack(kappa), at::stack(h), at::stack(w)};
  return path;
}

PathPoint DescentPath::at(const at::Tensor& beta, const at::Tensor& log_q0,
                          const at::Tensor& log_gamma) const {
  TORCH_CHECK(!needs_learning(), "path ", options_.name, ": a pilot has to learn it first");
  const int64_t problems = log_q0.size(0), particles = log_q0.size(1);
  const int64_t count = num_knots_.size(0), target = theta_.size(1);
  const at::Tensor from = log_q0.cpu().contiguous(), to = log_gamma.cpu().contiguous(),
                   betas = beta.cpu().select(1, 0).expand({problems}).contiguous();
  const at::Tensor density = at::empty_like(from), slope = at::empty_like(from);
  const double *q0 = from.data_ptr<double>(), *gamma = to.data_ptr<double>();
  double *log_density = density.data_ptr<double>(), *w = slope.data_ptr<double>();
  for (int64_t p = 0; p < problems; ++p) {
    const int64_t column = count == 1 ? 0 : p;
    const double b = betas.data_ptr<double>()[p], knots = num_knots_.data_ptr<double>()[column];
    const double place = b * knots, knot = std::min(knots - 1, std::floor(place));
    const double part = place - knot;
    const auto row = [&](double at_knot) {
      return (at_knot >= knots ? target : static_cast<int64_t>(at_knot)) * count + column;
    };
    const int64_t low = row(knot), high = row(knot + 1);
    for (int64_t i = p * particles; i < (p + 1) * particles; ++i) {
      const double kappa = gamma[i] - q0[i];
      const Tilt before = evaluate(tables_, low, kappa), after = evaluate(tables_, high, kappa);
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

namespace {

const Enrol<PathRegistry> kEnrolDescent(
    "f:DIVERGENCE[,length=L,knots=N]",
    "steepest descent of a divergence, by steps of length L (0.5) that a pilot takes",
    "f:jensen-shannon", [](Spec& spec) {
      const std::string divergence = spec.word("divergence");
      DescentOptions options{spec.text()};
      options.length = spec.number("length", 1e-3, 10, options.length);
      options.max_knots = spec.integer("knots", 1, 10'000, options.max_knots);
      return std::make_unique<DescentPath>(
          DivergenceRegistry::instance().make("divergence", divergence), options);
    });

}  // namespace

}  // namespace crais
