#include "paths/descent.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/plain.h"

namespace crais {
namespace {

constexpr int64_t kNodes = 192;  // nodes of a table

/// Points of v around 0, where most divergences bend; the points are densest near 0.
at::Tensor bends() { return 0.1 * at::linspace(-6, 6, 97, at::kDouble).sinh(); }

/// The logarithms [C] of the ends of the interval of u that contains the root of g(u) = m.
struct Bracket {
  at::Tensor low, high;
  Bracket(const Divergence& divergence, const at::Tensor& mean) {
    const at::Tensor powers = at::pow(2.0, at::linspace(-4, 40, 45, at::kDouble));
    const at::Tensor points = at::cat({-powers.flip(0), powers});
    const at::Tensor above = at::searchsorted(divergence.g(points), mean);
    const int64_t last = points.size(0) - 1;
    low = points.index_select(0, (above - 1).clamp(0, last));
    high = points.index_select(0, above.clamp(0, last));
  }
};

/// Solves y + step (g(y) - mean) = v for y [C,M], to `tolerance` or that share of y. Newton's
/// method, with bisection of a bracket where bisection is faster.
at::Tensor solve(const Divergence& divergence, const at::Tensor& v, const at::Tensor& mean,
                 const at::Tensor& step, double tolerance) {
  constexpr int kMostIterations = 200;
  const at::Tensor m = mean.unsqueeze(1), dt = step.unsqueeze(1);
  const Bracket bracket(divergence, mean);
  const at::Tensor least = bracket.low.unsqueeze(1), most = bracket.high.unsqueeze(1);
  // The root lies between v and the point where g(u) = m.
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

/// N nodes, dense where h bends. Neighbouring nodes enclose equal shares of int sqrt|w'|, which
/// bounds the error of a cubic, and partly equal shares of the whole range.
at::Tensor place_nodes(const at::Tensor& kappa, const at::Tensor& w, int64_t nodes) {
  constexpr double kEven = 0.3;  // share of the nodes that are evenly spaced
  const at::Tensor width = kappa.diff(1, 1), bend = (w.diff(1, 1).abs() * width).sqrt();
  const at::Tensor even = width / width.sum(1, true);
  const at::Tensor total = bend.sum(1, true);
  const at::Tensor share =
      at::where(total > 0, (1 - kEven) * bend / total + kEven * even, even).cumsum(1);
  const at::Tensor until =
      at::cat({at::zeros_like(width.slice(1, 0, 1)), share}, 1) / share.slice(1, -1);
  const at::Tensor targets =
      at::linspace(0, 1, nodes, kappa.options()).expand({kappa.size(0), nodes}).contiguous();
  const at::Tensor right = at::searchsorted(until, targets).clamp(1, kappa.size(1) - 1);
  const auto at_point = [](const at::Tensor& x, const at::Tensor& index) {
    return x.gather(1, index);
  };
  const at::Tensor u0 = at_point(until, right - 1), u1 = at_point(until, right);
  const at::Tensor part = ((targets - u0) / (u1 - u0)).clamp(0, 1);
  const at::Tensor placed = at::lerp(at_point(kappa, right - 1), at_point(kappa, right), part);
  return at::cat({kappa.slice(1, 0, 1), placed.slice(1, 1, -1), kappa.slice(1, -1)}, 1);
}

/// The columns at `index`; an undefined tensor stays undefined.
at::Tensor columns(const at::Tensor& x, const at::Tensor& index) {
  return x.index_select(1, index.to(x.device()));
}

}  // namespace

Descent::Descent(std::shared_ptr<const Divergence> divergence, const at::Tensor& range)
    : divergence_(std::move(divergence)), tilts_(Tilts::flat(range[0], range[1], kNodes)) {
  add_knot();
}

void Descent::advance(const at::Tensor& log_ratio, const at::Tensor& mean, const at::Tensor& step) {
  const at::Tensor dt = step.unsqueeze(1);
  struct Found {
    at::Tensor h, w;
  };
  const auto after = [&](const at::Tensor& kappa, double tolerance) -> Found {
    const TiltPoint before = evaluate(tilts_, kappa);
    const at::Tensor v = kappa - before.h - log_ratio.unsqueeze(1);
    const at::Tensor y = solve(*divergence_, v, mean, step, tolerance);
    const at::Tensor bend = at::where(dt == 0, 0.0, dt * divergence_->slope(y));
    return {kappa - y, (before.w + bend) / (1 + bend)};
  };
  // Where v is about to bend: v of each of these points, and the kappa at which v now has that
  // value.
  const at::Tensor y = bends().unsqueeze(0);
  const at::Tensor v =
      (y + (dt * (divergence_->g(y) - mean.unsqueeze(1))).nan_to_num(0.0)).contiguous();
  const at::Tensor now = (tilts_.kappa - tilts_.h - log_ratio.unsqueeze(1)).contiguous();
  const at::Tensor right = at::searchsorted(now, v).clamp(1, kNodes - 1);
  const at::Tensor v0 = now.gather(1, right - 1), v1 = now.gather(1, right);
  const at::Tensor part = ((v - v0) / (v1 - v0)).nan_to_num(0.5).clamp(0, 1);
  const at::Tensor bending =
      at::lerp(tilts_.kappa.gather(1, right - 1), tilts_.kappa.gather(1, right), part);
  const at::Tensor candidates = std::get<0>(at::cat({tilts_.kappa, bending}, 1).sort(1));
  constexpr double kRough = 1e-2, kExact = 1e-10;
  const at::Tensor nodes = place_nodes(candidates, after(candidates, kRough).w, kNodes);
  const Found fitted = after(nodes, kExact);
  tilts_ = Tilts::through(nodes, fitted.h, fitted.w);
  add_knot();
}

void Descent::add_knot() {
  const at::Tensor origin = at::zeros_like(tilts_.kappa.slice(1, 0, 1));
  knots_.push_back({tilts_.kappa, tilts_.h - evaluate(tilts_, origin).h, tilts_.w});
}

DescentPath::DescentPath(std::string name, std::shared_ptr<const Divergence> divergence,
                         const DescentOptions& options)
    : Path(std::move(divergence)), name_(std::move(name)), options_(options) {
  curvature_ = this->divergence().slope(at::zeros({}, at::kDouble)).item<double>();
}

std::shared_ptr<const DescentPath> DescentPath::with(const DescentConstants& constants) const {
  Descent descent(shared_divergence(), constants.range);
  for (int64_t i = 0; i < constants.step.size(0); ++i)
    descent.advance(constants.log_ratio[i], constants.mean[i], constants.step[i]);
  return with(constants, descent);
}

std::shared_ptr<const DescentPath> DescentPath::with(const DescentConstants& constants,
                                                     const Descent& descent) const {
  auto path = std::make_shared<DescentPath>(*this);
  path->constants_ = constants;
  const at::Tensor& step = constants.step;
  path->num_knots_ = 1 + (step > 0).sum(0).to(at::kDouble);
  path->theta_ = at::cat({at::zeros_like(step.slice(0, 0, 1)), step.cumsum(0)}).t().contiguous();
  std::vector<Tilts> tables = descent.knots();
  const at::Tensor ends = tables.front().kappa;
  tables.push_back({ends, ends, at::ones_like(ends)});  // the target
  const auto all = [&](at::Tensor Tilts::*field) {
    std::vector<at::Tensor> list;
    list.reserve(tables.size());
    for (const Tilts& table : tables) list.push_back(table.*field);
    return at::cat(list);
  };
  path->tables_ = {all(&Tilts::kappa), all(&Tilts::h), all(&Tilts::w)};
  return path;
}

std::shared_ptr<const DescentPath> DescentPath::select(const at::Tensor& index) const {
  auto path = std::make_shared<DescentPath>(*this);
  const int64_t count = constants_.step.size(1);
  if (count == 1) return path;  // shared
  path->constants_ = {columns(constants_.range, index), columns(constants_.log_ratio, index),
                      columns(constants_.mean, index), columns(constants_.step, index)};
  path->num_knots_ = num_knots_.index_select(0, index.to(num_knots_.device()));
  path->theta_ = theta_.index_select(0, index.to(theta_.device()));
  const auto chosen = [&](const at::Tensor& table) {
    return columns(table.view({-1, count, kNodes}), index).flatten(0, 1);
  };
  path->tables_ = {chosen(tables_.kappa), chosen(tables_.h), chosen(tables_.w)};
  return path;
}

std::shared_ptr<const DescentPath> DescentPath::to(c10::Device device) const {
  auto path = std::make_shared<DescentPath>(*this);
  path->num_knots_ = num_knots_.to(device);
  path->theta_ = theta_.to(device);
  path->tables_ = {tables_.kappa.to(device), tables_.h.to(device), tables_.w.to(device)};
  return path;
}

Tilts DescentPath::rows(const at::Tensor& knot) const {
  const int64_t count = num_knots_.size(0), target = theta_.size(1);
  const at::Tensor column = at::arange(count, knot.options().dtype(at::kLong)).expand_as(knot);
  const at::Tensor row =
      at::where(knot >= num_knots_, static_cast<double>(target), knot).to(at::kLong) * count +
      column;
  return {tables_.kappa.index_select(0, row), tables_.h.index_select(0, row),
          tables_.w.index_select(0, row)};
}

PathPoint DescentPath::at(const at::Tensor& beta, const at::Tensor& log_q0,
                          const at::Tensor& log_gamma) const {
  TORCH_CHECK(!needs_learning(), "path ", name_, ": a pilot has to learn it first");
  if (is_plain(log_q0, at::kDouble) && is_plain(log_gamma, at::kDouble) &&
      log_q0.sizes() == log_gamma.sizes())
    return at_each(beta, log_q0, log_gamma);
  const at::Tensor kappa = log_gamma - log_q0;
  // The problems at one beta of a shared path form one long row.
  const bool is_one_row = num_knots_.size(0) == 1 && (beta.size(0) == 1 || beta.stride(0) == 0);
  const at::Tensor row = is_one_row ? kappa.reshape({1, -1}) : kappa;
  const at::Tensor place =
      (is_one_row ? beta.select(1, 0).slice(0, 0, 1) : beta.select(1, 0)) * num_knots_;
  const at::Tensor knot = at::minimum(place.floor(), num_knots_ - 1);
  const at::Tensor part = (place - knot).unsqueeze(1);
  const TiltPoint point = mix(part, evaluate(rows(knot), row), evaluate(rows(knot + 1), row));
  const at::Tensor h = point.h.view_as(kappa), w = point.w.view_as(kappa);
  const at::Tensor at_start = beta == 0, at_end = beta == 1;
  const at::Tensor slope =
      at::where(at_start, at::zeros_like(w), at::where(at_end, at::ones_like(w), w));
  return {at::where(at_start, log_q0, at::where(at_end, log_gamma, log_q0 + h)), 1 - slope, slope};
}

PathPoint DescentPath::at_each(const at::Tensor& beta, const at::Tensor& log_q0,
                               const at::Tensor& log_gamma) const {
  const int64_t problems = log_q0.size(0), particles = log_q0.size(1);
  const int64_t count = num_knots_.size(0), target = theta_.size(1);
  const at::Tensor betas = beta.select(1, 0).expand({problems}).contiguous();
  PathPoint point{at::empty_like(log_q0), at::empty_like(log_q0), at::empty_like(log_q0)};
  const double *q0 = log_q0.data_ptr<double>(), *gamma = log_gamma.data_ptr<double>();
  double *density = point.log_density.data_ptr<double>(),
         *of_q0 = point.d_log_q0.data_ptr<double>(),
         *of_gamma = point.d_log_gamma.data_ptr<double>();
  for (int64_t p = 0; p < problems; ++p) {
    const int64_t column = count == 1 ? 0 : p;
    const double b = betas.data_ptr<double>()[p], knots = num_knots_.data_ptr<double>()[column];
    const double place = b * knots, knot = std::min(knots - 1, std::floor(place));
    const auto row = [&](double at_knot) {
      return (at_knot >= knots ? target : static_cast<int64_t>(at_knot)) * count + column;
    };
    const int64_t low = row(knot), high = row(knot + 1);
    for (int64_t i = p * particles; i < (p + 1) * particles; ++i) {
      const double kappa = gamma[i] - q0[i];
      const TiltNumber between =
          mix(place - knot, evaluate(tables_, low, kappa), evaluate(tables_, high, kappa));
      density[i] = b == 0 ? q0[i] : b == 1 ? gamma[i] : q0[i] + between.h;
      of_gamma[i] = b == 0 ? 0 : b == 1 ? 1 : between.w;
      of_q0[i] = 1 - of_gamma[i];
    }
  }
  return point;
}

at::Tensor DescentPath::advance(const at::Tensor& beta, const at::Tensor& log_time) const {
  const at::Tensor theta = theta_.expand({beta.size(0), -1}).contiguous();
  const at::Tensor last = (num_knots_ - 1).expand_as(beta);
  const auto theta_at = [&](const at::Tensor& knot) {
    return theta.gather(1, knot.to(at::kLong).clamp(0, theta.size(1) - 1).unsqueeze(1)).squeeze(1);
  };
  // From the last knot to the target, v shrinks by exp(-f''(1) theta), its rate near the target.
  const at::Tensor place = beta * num_knots_, knot = at::minimum(place.floor(), last);
  const at::Tensor part = place - knot, from = theta_at(knot);
  const at::Tensor now = at::where(knot == last, from - at::log1p(-part) / curvature_,
                                   from + part * (theta_at(knot + 1) - from));
  const at::Tensor then = now + log_time.exp();
  const at::Tensor reached = at::minimum(
      at::searchsorted(theta, then.unsqueeze(1), false, /*right=*/true).squeeze(1).to(last) - 1,
      last);
  const at::Tensor since = then - theta_at(reached);
  const at::Tensor done = at::where(reached == last, -at::expm1(-curvature_ * since),
                                    since / (theta_at(reached + 1) - theta_at(reached)));
  return (reached + done) / num_knots_;
}

namespace {

const Enrol<PathRegistry> kEnrolDescent(
    "f", {"f:DIVERGENCE[,length=L,knots=N]",
          "steepest descent of any f-divergence, by steps of length L (0.5) that a pilot takes",
          "f:jensen-shannon", [](Spec& spec) {
            const std::string divergence = spec.word("divergence");
            DescentOptions options;
            options.length = spec.number("length", 1e-3, 10, options.length);
            options.max_knots = spec.integer("knots", 1, 10'000, options.max_knots);
            return std::make_unique<DescentPath>(
                spec.text(), DivergenceRegistry::instance().make("divergence", divergence),
                options);
          }});

}  // namespace

}  // namespace crais
