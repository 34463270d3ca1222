// A normal at each mode that a search from many starts finds. The normals are the parts of a
// partition of unity.
//
// The search goes on in batches of starts until most likely no mode is left, and estimates what no
// start has reached: if f_1 of n climbs ended where no other climb did, about f_1 / n of further
// starts would lead to unseen modes.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bases/climb.h"
#include "core/log_math.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr double kUnseen = 0.12;  // limit of the share of further starts that lead to unseen modes
constexpr double kSerious = 6.0;  // nats below the greatest mass; modes further below are light
constexpr double kUnseenMass = 0.05;
constexpr int64_t kFewStarts = 16;            // of the first batch for an image: most have one mode
constexpr int64_t kDrawsAStart = 32;          // draws; the most probable one is a start
constexpr double kStray = 1e3;                // decrement of what is no mode
constexpr double kScales[] = {1, 3, 10, 30};  // of starts, for a density without a prior

/// The modes of one problem among its climbs, heaviest first.
struct Found {
  std::vector<int64_t> climbs;  // for each mode, the index of a climb that ended there
  std::vector<int64_t> light;   // the same for modes that are dropped
  double unseen = 0;            // estimated share of further starts that would lead elsewhere
  double unseen_mass = 0;       // estimated mass elsewhere, relative to that of the modes found
  double mass_once = 0;         // share of the mass that is at modes seen once
  int64_t ends = 0;             // climbs that arrived at a mode
  bool is_cut = false;          // modes that are not light were dropped

  /// True if the search has most likely seen every mode that matters.
  bool is_enough(int64_t ends_a_mode) const {
    return unseen == 0 && !is_cut && ends >= ends_a_mode * static_cast<int64_t>(climbs.size());
  }
};

/// Estimates the unseen modes from the number of arrivals at each mode and its mass: the share of
/// further starts that would lead to unseen modes that are not light [Good 1953], and the mass of
/// all unseen modes, because many light modes add up. The number of unseen modes is at least f_1
/// (f_1 - 1) / (2 (f_2 + 1)), and they are as heavy as modes seen once [Chao 1984].
void estimate_unseen(Found& found, const std::vector<int64_t>& arrivals,
                     const std::vector<double>& masses) {
  if (found.ends == 0) return;
  double once = 0, once_and_heavy = 0, twice = 0, mass_once = 0, total = 0;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    total += masses[i];
    twice += arrivals[i] == 2 ? 1 : 0;
    if (arrivals[i] != 1) continue;
    once += 1;
    mass_once += masses[i];
    once_and_heavy += masses[i] > std::exp(-kSerious) ? 1 : 0;
  }
  const auto ends = static_cast<double>(found.ends);
  found.unseen = once_and_heavy / ends;
  found.mass_once = mass_once / total;
  if (2 * once >= ends)  // else these are most likely climbs that ended early
    found.unseen_mass = mass_once * (once - 1) / (2 * (twice + 1)) / total;
}

/// A normal of one problem.
struct Part {
  int64_t problem;
  at::Tensor loc, root;  // [D], [D,D]
  double log_mass;
  bool is_tail = false;
};

constexpr double kMostReach = 64;  // of a normal's columns, or one in as many

/// Evaluations that `reaches` takes of each end of each column of a normal.
int reach_iterations(int64_t dim) { return dim > kManyDims ? 1 : 4; }

/// The distance to which the density reaches on both sides of each normal's middle, along each
/// column of its root and in units of it, before it falls by half a nat: [R,2,D] float64. It is 1
/// if the density is the normal, and differs near a kink, on a plain or on a ridge. Cost: 2 D
/// reach_iterations densities a normal.
at::Tensor reaches(const Target& rows, const at::Tensor& loc, const at::Tensor& root, Cost& cost) {
  constexpr double kFall = 0.5, kFactor = 4;
  const int iterations = reach_iterations(rows.dim());
  const at::Tensor columns = root.transpose(1, 2);                              // [R,D,D]
  const at::Tensor sides = at::cat({columns, -columns}, 1).to(root.options());  // [R,2D,D]
  const at::Tensor top = rows.log_density(loc.unsqueeze(1)).to(at::kDouble);
  at::Tensor reach = at::ones({loc.size(0), sides.size(1)}, top.options());
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor points = loc.unsqueeze(1) + reach.to(root.scalar_type()).unsqueeze(2) * sides;
    const at::Tensor fall = (top - rows.log_density(points).to(at::kDouble))
                                .nan_to_num(kMostReach)
                                .clamp(kFall / (kFactor * kFactor), kFall * kFactor * kFactor);
    reach =
        (reach * (kFall / fall).sqrt()).clamp(1 / kMostReach, kMostReach);  // exact for a parabola
    cost += Cost{points.size(0) * points.size(1), 0};
  }
  return reach.view({loc.size(0), 2, loc.size(1)});
}

/// `part` with each column of its root multiplied by `scale` [D].
Part stretched(const Part& part, const at::Tensor& scale, bool is_tail = false) {
  return {part.problem, part.loc, part.root * scale.to(part.root.scalar_type()).unsqueeze(0),
          part.log_mass + scale.log().sum().item<double>(), is_tail};
}

at::Tensor log_volume(const at::Tensor& root) {
  return root.diagonal(0, -2, -1).to(at::kDouble).log().sum(-1);
}

constexpr double kAlike = 1.5;  // nats of volume; a kink has one fit on each side

/// All fits of all problems so far, S for each: the ends of climbs and, if it is wider and as good,
/// the fit one round earlier. In many dimensions a curvature changes its volume by nats over the
/// last steps of any climb, so the earlier fit is left out.
struct Fits {
  at::Tensor z, root, log_mass, failed, is_end;  // [P,S,D], [P,S,D,D], [P,S], [P,S], [P,S] bool

  void add(const Target& rows, const Mode& mode, int64_t problems, Cost& cost) {
    const at::Tensor failed_here = mode.failed | ~mode.log_mass.isfinite();
    join(problems, mode.z, mode.root, mode.log_mass, failed_here, true);
    if (rows.dim() > kManyDims) return;
    const at::Tensor more = log_volume(mode.before) - log_volume(mode.root);
    const at::Tensor index = at::nonzero(~failed_here & (more > kAlike)).flatten();
    at::Tensor before = mode.before.clone(), is_not = at::ones_like(failed_here);
    if (index.numel() > 0) {
      const at::Tensor roots = before.index_select(0, index);
      const at::Tensor reach =
          reaches(*rows.select(index), mode.z.index_select(0, index), roots, cost);
      const at::Tensor scale = std::get<0>(reach.max(1)).clamp_max(1).to(roots.scalar_type());
      before.index_copy_(0, index, roots * scale.unsqueeze(1));
      // A curvature from a flat tail is no fit: it is too wide by any factor.
      is_not.index_copy_(
          0, index,
          (scale.amin(1) <= 1 / kMostReach) | (log_volume(before.index_select(0, index)) -
                                                   log_volume(mode.root.index_select(0, index)) <
                                               kAlike));
    }
    join(problems, mode.z, before, mode.log_mass + log_volume(before) - log_volume(mode.root),
         is_not, false);
  }

  /// Adds fits for the problems at `index`, and failures for all others.
  void add_at(const at::Tensor& index, const Fits& more) {
    if (!z.defined()) {
      *this = more;
      return;
    }
    const auto join_at = [&](at::Tensor& all, const at::Tensor& values, double otherwise) {
      all = at::cat({all, spread(values, all.size(0), index, otherwise)}, 1);
    };
    join_at(z, more.z, 0);
    join_at(root, more.root, 1);
    join_at(log_mass, more.log_mass, 0);
    join_at(failed, more.failed, 1);
    join_at(is_end, more.is_end, 0);
  }

 private:
  void join(int64_t problems, const at::Tensor& z_more, const at::Tensor& root_more,
            const at::Tensor& mass_more, const at::Tensor& failed_more, bool are_ends) {
    const auto put = [&](at::Tensor& all, const at::Tensor& more) {
      std::vector<int64_t> shape = more.sizes().vec();
      shape[0] /= problems;
      shape.insert(shape.begin(), problems);
      all = all.defined() ? at::cat({all, more.view(shape)}, 1) : more.view(shape);
    };
    put(z, z_more);
    put(root, root_more);
    put(log_mass, mass_more);
    put(failed, failed_more);
    put(is_end, at::full_like(failed_more, are_ends));
  }
};

/// Points [N,D] that cover N(0, I) evenly: a shifted lattice of rank 1, whose generator is nearly
/// that of a Kronecker sequence [Roberts 2018]. N is a power of 2. Every second point is one too.
at::Tensor even_points(int64_t count, int64_t dim, at::Generator& rng) {
  double golden = 1.5;  // the root of x^(D+1) = x + 1
  for (int i = 0; i < 64; ++i) golden = std::pow(1 + golden, 1.0 / static_cast<double>(dim + 1));
  const at::TensorOptions wide = at::TensorOptions(rng.device()).dtype(at::kDouble);
  const auto points = static_cast<double>(count);
  const at::Tensor ideal = points * at::pow(golden, -at::arange(1, dim + 1, wide));
  const at::Tensor step = (2 * (ideal / 2).floor() + 1) / points;  // odd: no point comes twice
  const at::Tensor shift = fill_uniform(at::empty({dim}, wide), rng);
  const at::Tensor u = (shift + at::arange(count, wide).unsqueeze(1) * step).frac();
  return at::special_ndtri(u.clamp(1e-9, 1 - 1e-9));
}

/// The starts of a search in few dimensions.
struct Peaks {
  at::Tensor z;         // [P,S,D]; NaN where a problem has fewer than S
  at::Tensor crowded;   // [P] bool: so many that others may hide between the points
  at::Tensor at_least;  // see Base
};

int64_t sweep_size(int64_t dim) { return 512 << dim; }

/// The points of a sweep under the prior, half of them wide, that are higher than their neighbours
/// and may be next to one not far below the highest, at most `most`. Cost: a density at each point.
Peaks peaks_of_sweep(const Target& target, int64_t most, at::Generator& rng, Cost& cost) {
  constexpr double kFar = 25, kFewPoints = 10;  // nats; a sum over fewer is a guess
  constexpr int64_t kAtOnce = 256;
  const int64_t problems = target.num_problems(), dim = target.dim(), count = sweep_size(dim);
  const at::Tensor u = even_points(count, dim, rng).to(target.prior_base().loc().options());
  u.slice(0, 1, count, 2).mul_(kScales[1]);  // what the model does not draw lies far out
  const at::Tensor near = std::get<1>(at::cdist(u, u).topk(1 + 4 * dim, 1, /*largest=*/false));
  const at::Tensor z = target.prior_base().to_z(u.expand({problems, count, dim}));
  std::vector<at::Tensor> parts;
  for (const at::Tensor& some : z.split(kAtOnce, 1)) {
    stop_if_interrupted();
    parts.push_back(target.log_density(some).to(at::kDouble).nan_to_num(-INFINITY));
  }
  cost += Cost{problems * count, 0};
  const at::Tensor height = at::cat(parts, 1);  // [P,N]
  // The sum over half of the points differs from that over all by more than the latter's error.
  const at::Tensor log_w = (height + u.to(at::kDouble).square().sum(1) / 2).slice(1, 0, count, 2);
  const at::Tensor log_sum = log_mean_exp(log_w), half = log_mean_exp(log_w.slice(1, 0, count, 2));
  const at::Tensor to_log_z =
      target.prior_base().log_abs_det() + 0.5 * static_cast<double>(dim) * std::log(2 * M_PI);
  const at::Tensor around = height.index_select(1, near.flatten()).view({problems, count, -1});
  const auto [highest, place] = height.max(1, /*keepdim=*/true);
  const at::Tensor is_top = height == around.amax(2),
                   number = (is_top & (height > highest - kFar)).sum(1);
  // Between the points the density may rise above a top by what the top is above its neighbours.
  const at::Tensor hidden = height + (height - around.mean(2)).nan_to_num(0);
  const at::Tensor is_peak = (is_top & (hidden > highest - kFar)).scatter(1, place, true);
  const int64_t starts = std::min(is_peak.sum(1).max().item<int64_t>(), most);
  const at::Tensor order = std::get<1>(hidden.masked_fill(~is_peak, -INFINITY).topk(starts, 1));
  const at::Tensor rows = order.unsqueeze(2).expand({problems, starts, dim});
  return {
      z.gather(1, rows).masked_fill(~is_peak.gather(1, order).unsqueeze(2), NAN),
      (number > most) | (number * near.size(1) * 4 > count),
      (log_sum + to_log_z - (log_sum - half).abs())
          .masked_fill(ess(log_w) * static_cast<double>(log_w.size(1)) < kFewPoints, -INFINITY)};
}

/// The most probable of some draws from the prior of each problem, [P,D]. Cost: added.
at::Tensor most_probable_draw(const Target& target, at::Generator& rng, Cost& cost) {
  const int64_t problems = target.num_problems(), dim = target.dim();
  cost += Cost{problems * kDrawsAStart, 0};
  const at::Tensor e = fill_normal(at::empty({problems, kDrawsAStart, dim}, target.options()), rng);
  const at::Tensor z = target.prior_base().to_z(e);
  const at::Tensor density = target.log_density(z).nan_to_num(-INFINITY);
  const at::Tensor best = density.argmax(1).view({problems, 1, 1}).expand({problems, 1, dim});
  return z.gather(1, best).squeeze(1);
}

/// How a search for modes goes on.
struct Effort {
  int64_t starts;       // of a batch, but for an image's first
  int64_t batches;      // at most
  int64_t ends_a_mode;  // see Found::is_enough
  double until;         // see climb
  int64_t most;         // modes that become parts
  int64_t dearest;      // evaluations; no further batch would exceed them by much
};

class Modes : public BaseRule {
 public:
  Modes(const ModeOptions& o, bool one_density)
      : widening_(o.widening), starts_(o.starts), batches_(o.batches), one_density_(one_density) {
    name = specification("modes", o);
  }

  Base build(const Target& target, at::Generator& rng) const override {
    if (!target.traits().can_select) return make_laplace()->build(target, rng);
    const AffineMap guess = first_guess(target);
    const Effort effort = effort_of(target);
    Cost cost;
    Fits fits;
    std::vector<Found> found;
    if (sweeps(target)) {
      const Peaks peaks = peaks_of_sweep(target, 4 * effort.most, rng, cost);
      // Draws come from both sides of a kink.
      const at::Tensor drawn = start_points(target, guess, kFewStarts, true, rng, cost);
      climb_all(target, at::cat({peaks.z, drawn}, 1), effort.until, fits, cost);
      found = sorted_out(fits, effort.most);
      for (size_t p = 0; p < found.size(); ++p) {
        found[p].unseen = peaks.crowded[static_cast<int64_t>(p)].item<bool>() ? 1 : 0;
        found[p].mass_once = 0;
      }
      Base base = assembled(target, fits, found, guess, cost);
      base.at_least = peaks.at_least;
      return base;
    }
    at::Tensor open = at::arange(target.num_problems(), target.options().dtype(at::kLong));
    for (int64_t batch = 0; batch < effort.batches && open.numel() > 0; ++batch) {
      if ((one_density_ ? 2 : 1) * cost.densities > effort.dearest) break;
      fits.add_at(open,
                  searched(*target.select(open), guess.select(open), effort, batch, rng, cost));
      found = sorted_out(fits, effort.most);
      std::vector<int64_t> unfinished;
      for (size_t p = 0; p < found.size(); ++p)
        if (one_density_ ? !found[p].is_enough(effort.ends_a_mode) || found[p].climbs.size() > 1
                         : !found[p].is_enough(effort.ends_a_mode) && !found[p].is_cut)
          unfinished.push_back(static_cast<int64_t>(p));
      open = at::tensor(unfinished, open.options());
    }
    return assembled(target, fits, found, guess, cost);
  }

  /// Cost of a sweep, or of a search that ends with its first batch of many starts, where there is
  /// one mode.
  std::optional<double> expected_cost(const Target& target) const override {
    const Effort effort = effort_of(target);
    const int64_t round = target.curvature_cost() + steps_a_round(target),
                  climb = 1 + kUsualRounds * round;
    int64_t cost = 2 * target.dim() * reach_iterations(target.dim());
    if (sweeps(target)) {
      cost += sweep_size(target.dim()) + kFewStarts * climb;
    } else if (one_density_) {
      cost += effort.starts * climb;
    } else {
      cost += std::min(kFewStarts, effort.starts) * (climb + kDrawsAStart / 2);
      if (effort.batches > 1)
        cost += effort.starts * (1 + round + kDrawsAStart / 2) + (effort.starts + 3) / 4 * climb;
    }
    return static_cast<double>(cost);
  }

 private:
  bool sweeps(const Target& target) const {
    constexpr int64_t kFewDims = 3;
    return !one_density_ && target.dim() <= kFewDims && starts_ + batches_ == 0;
  }

  /// A density is worth a longer search than one image of many. Where it has several modes, further
  /// ones are likely, and the batches double.
  Effort effort_of(const Target& target) const {
    const int64_t curvature = target.curvature_cost(), ends = target.dim() > kManyDims ? 4 : 8;
    Effort effort{std::clamp<int64_t>(600 / curvature, 4, 48), 8, 8, 0.1, 32,
                  std::numeric_limits<int64_t>::max()};
    if (one_density_)
      effort = {std::clamp<int64_t>(1500 / curvature, 4, 128), 16, ends, 1e-3, 64, 80'000};
    if (starts_ > 0) effort.starts = starts_;
    if (batches_ > 0) effort.batches = batches_;
    return effort;
  }

  /// The fits of a batch of starts. For images, few starts go first, and of later ones the highest
  /// quarter after a round goes on.
  Fits searched(const Target& target, const AffineMap& guess, const Effort& effort, int64_t batch,
                at::Generator& rng, Cost& cost) const {
    const bool is_first = batch == 0;
    const int64_t starts = one_density_ ? effort.starts << batch
                           : is_first   ? std::min(kFewStarts, effort.starts)
                                        : effort.starts;
    at::Tensor from = start_points(target, guess, starts, is_first, rng, cost);
    if (!is_first && !one_density_) from = highest(target, from, cost);
    Fits fits;
    climb_all(target, from, effort.until, fits, cost);
    return fits;
  }

  /// Each problem as many times as it has starts.
  static std::shared_ptr<const Target> for_each_start(const Target& target,
                                                      const at::Tensor& from) {
    return target.select(
        at::arange(from.size(0), from.options().dtype(at::kLong)).repeat_interleave(from.size(1)));
  }

  void climb_all(const Target& target, const at::Tensor& from, double until, Fits& fits,
                 Cost& cost) const {
    const auto many = for_each_start(target, from);
    const at::Tensor start = from.flatten(0, 1);
    const at::Tensor rows = at::nonzero(start.isfinite().all(1)).flatten();
    Mode ends = climb(*many->select(rows), start.index_select(0, rows), kMostRounds, until, cost,
                      one_density_);
    // In a flat tail a climb gets stuck: Newton's step is any number too long. On its way it has
    // the curvature of elsewhere, which may be much wider than a mode.
    if ((ends.decrement < until).any().item<bool>())
      ends.failed = ends.failed | (ends.decrement > kStray);
    fits.add(*many, ends.among(start.size(0), rows), from.size(0), cost);
  }

  /// The quarter [P,S/4,D] of the starts [P,S,D] that is highest for each problem after one round.
  static at::Tensor highest(const Target& target, const at::Tensor& from, Cost& cost) {
    const int64_t problems = from.size(0), starts = from.size(1), dim = from.size(2);
    Climb climb(*for_each_start(target, from), from.flatten(0, 1));
    climb.steps(climb.curvature().covariance_root, steps_a_round(target));
    cost += Cost::with_gradient(problems * starts *
                                (1 + target.curvature_cost() + steps_a_round(target)));
    const at::Tensor height = climb.log_density()
                                  .nan_to_num(-std::numeric_limits<double>::infinity())
                                  .view({problems, starts});
    const at::Tensor order = std::get<1>(height.topk((starts + 3) / 4, 1));
    return climb.z()
        .view({problems, starts, dim})
        .gather(1, order.unsqueeze(2).expand({-1, -1, dim}));
  }

  /// Starts [P,S,D]: draws of the prior, some of them the most probable of many. The first batch
  /// also holds the guess and the target's known points.
  at::Tensor start_points(const Target& target, const AffineMap& guess, int64_t starts,
                          bool with_guess, at::Generator& rng, Cost& cost) const {
    const int64_t problems = target.num_problems(), dim = target.dim();
    const at::Tensor e = fill_normal(at::empty({problems, starts, dim}, target.options()), rng);
    at::Tensor z = target.prior_base().to_z(e).clone();
    if (one_density_) {
      const int64_t count = target.traits().has_prior ? 1
                            : dim > kManyDims         ? 2
                                                      : std::ssize(kScales);
      for (int64_t s = 0; s < starts; ++s) z.select(1, s).mul_(kScales[s % count]);
    } else {
      for (int64_t s = 2; s < starts; s += 2)
        z.select(1, s).copy_(most_probable_draw(target, rng, cost));
    }
    if (!with_guess) return z;
    z.select(1, 0).copy_(guess.loc());
    const std::optional<at::Tensor> known = target.traits().starts;
    if (!known) return z;
    return at::cat({known->to(z.options()).expand({problems, known->size(0), dim}), z}, 1);
  }

  /// Which of S fits N(z_i, root_i root_i^T) are of the same mode as fit k, [S] bool: both are near
  /// in standard deviations of either, and their volumes are alike.
  static at::Tensor are_of_mode(const at::Tensor& z, const at::Tensor& root, int64_t k) {
    const at::Tensor apart = z.to(at::kDouble) - z[k].to(at::kDouble), wide = root.to(at::kDouble);
    const auto squared = [](const at::Tensor& triangle, const at::Tensor& x) {
      return at::linalg_solve_triangular(triangle, x, /*upper=*/false).square().sum(-2);
    };
    const at::Tensor from_k = squared(wide[k], apart.t()),
                     to_k = squared(wide, apart.unsqueeze(2)).squeeze(1);
    const at::Tensor log_det = log_volume(root);
    return ((at::maximum(from_k, to_k) < farthest_of_one_mode(z.size(1))) &
            ((log_det - log_det[k]).abs() < kAlike))
        .index_fill(0, at::full({1}, k, z.options().dtype(at::kLong)), true);
  }

  static std::vector<Found> sorted_out(const Fits& fits, int64_t most) {
    const at::Tensor mass = fits.log_mass.cpu().contiguous(), ends = fits.is_end.cpu().contiguous();
    const at::Tensor failed = fits.failed.cpu().contiguous();
    const auto m = mass.accessor<double, 2>();
    const int64_t problems = mass.size(0), count = mass.size(1);
    std::vector<Found> all(static_cast<size_t>(problems));
    for (int64_t p = 0; p < problems; ++p) {
      const bool *has_failed = failed[p].const_data_ptr<bool>(),
                 *is_end = ends[p].const_data_ptr<bool>();
      std::vector<int64_t> order;  // climbs of no mode yet, highest first
      for (int64_t s = 0; s < count; ++s)
        if (!has_failed[s]) order.push_back(s);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return m[p][a] > m[p][b]; });
      Found& found = all[static_cast<size_t>(p)];
      std::vector<int64_t> arrivals;
      while (!order.empty()) {
        const at::Tensor is_same =
            are_of_mode(fits.z[p], fits.root[p], order.front()).cpu().contiguous();
        const bool* same = is_same.const_data_ptr<bool>();
        found.climbs.push_back(order.front());
        arrivals.push_back(std::count_if(order.begin(), order.end(),
                                         [&](int64_t s) { return same[s] && is_end[s]; }));
        found.ends += arrivals.back();
        order.erase(std::remove_if(order.begin(), order.end(), [&](int64_t s) { return same[s]; }),
                    order.end());
      }
      std::vector<double> masses;  // relative to the heaviest
      for (const int64_t s : found.climbs)
        masses.push_back(std::exp(m[p][s] - m[p][found.climbs[0]]));
      estimate_unseen(found, arrivals, masses);
      // Neighbours cover modes of less than a thousandth of the mass.
      const auto heavy = std::count_if(masses.begin(), masses.end(),
                                       [](double mass) { return mass >= kLeastShare; });
      const auto kept = found.climbs.begin() + std::min<int64_t>(heavy, most);
      found.is_cut = heavy > most;
      found.light.assign(kept, found.climbs.end());
      found.climbs.erase(kept, found.climbs.end());
    }
    return all;
  }

  /// The normals of all problems, stretched as far as the density reaches. A normal that is far too
  /// narrow on one side gets a wider neighbour.
  std::vector<Part> parts_of(const Target& target, const Fits& fits,
                             const std::vector<Found>& found, Cost& cost) const {
    std::vector<Part> parts;
    std::vector<at::Tensor> loc, root;
    std::vector<int64_t> problem;
    for (size_t p = 0; p < found.size(); ++p)
      for (const int64_t s : found[p].climbs) {
        problem.push_back(static_cast<int64_t>(p));
        loc.push_back(fits.z[problem.back()][s]);
        root.push_back(fits.root[problem.back()][s]);
        parts.push_back({problem.back(), loc.back(), root.back(),
                         fits.log_mass[problem.back()][s].item<double>()});
      }
    if (parts.empty()) return parts;
    const at::Tensor rows = at::tensor(problem, at::kLong).to(fits.z.device());
    const at::Tensor reach = reaches(*target.select(rows), at::stack(loc), at::stack(root), cost);
    for (size_t r = 0; r < problem.size(); ++r) {
      const at::Tensor wider = std::get<0>(reach[static_cast<int64_t>(r)].max(0));
      if ((wider > far_reach(target.dim())).any().item<bool>())
        parts.push_back(stretched(parts[r], wider, /*is_tail=*/true));
      parts[r] = stretched(parts[r], wider.clamp_max(1));
    }
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.problem != b.problem ? a.problem < b.problem : a.log_mass > b.log_mass;
    });
    return parts;
  }

  Base assembled(const Target& target, const Fits& fits, const std::vector<Found>& found,
                 const AffineMap& guess, Cost cost) const {
    std::vector<Part> parts = parts_of(target, fits, found, cost);
    const at::Tensor guess_root = guess.matrix();
    std::vector<uint8_t> failed, ambiguous, tails;
    for (size_t i = 0; i < found.size(); ++i) {
      failed.push_back(found[i].climbs.empty());
      ambiguous.push_back(found[i].is_cut || found[i].unseen > kUnseen ||
                          (!one_density_ && found[i].mass_once > kUnseenMass) ||
                          (one_density_ && found[i].unseen_mass > kUnseenMass));
      if (!found[i].climbs.empty()) continue;
      const auto p = static_cast<int64_t>(i);
      const auto place = std::find_if(parts.begin(), parts.end(),
                                      [&](const Part& part) { return part.problem > p; });
      parts.insert(place, {p, guess.loc()[p], guess_root[p] / widening_, 0});
    }
    std::vector<at::Tensor> loc, root;
    std::vector<int64_t> problem;
    std::vector<double> log_mass;
    for (const Part& part : parts) {
      loc.push_back(part.loc);
      root.push_back(widening_ * part.root);
      problem.push_back(part.problem);
      log_mass.push_back(part.log_mass);
      tails.push_back(part.is_tail);
    }
    const at::TensorOptions options = guess.loc().options();
    Base base(AffineMap(at::stack(loc), at::stack(root)),
              at::tensor(failed, at::kByte).to(options.dtype(at::kBool)), cost);
    base.ambiguous = at::tensor(ambiguous, at::kByte).to(options.dtype(at::kBool));
    if (found.size() == 1 && !found[0].light.empty()) {
      const at::Tensor light = at::tensor(found[0].light, at::kLong).to(fits.z.device());
      base.light_modes.emplace(fits.z[0].index_select(0, light),
                               fits.root[0].index_select(0, light));
    }
    if (parts.size() == found.size()) return base;
    base.tails = at::tensor(tails, at::kByte).to(options.dtype(at::kBool));
    base.partition = Partition::by_mass(at::tensor(problem, at::kLong).to(options.device()),
                                        at::tensor(log_mass, at::kDouble).to(options.device()),
                                        static_cast<int64_t>(found.size()));
    return base;
  }

  /// A longer reach gets a part of its own. Among many directions some are skewed, and such a part
  /// would take half of all chains.
  static double far_reach(int64_t dim) { return dim > kManyDims ? 4 : 2; }

  double widening_;
  int64_t starts_, batches_;  // 0: as the effort for the target says
  bool one_density_;
};

const Enrol<BaseRegistry> kEnrolModesBase(
    "modes[:W]",
    "a Laplace fit, its standard deviations times W, at each mode that a search finds; chains "
    "start from every one, and their estimates add up (starts=N of a batch: 4 to 128, by what they "
    "cost; batches=N: at most 8, of a density 16; without either, a sweep for three latents or "
    "fewer)",
    "modes:1.1,starts=4", [](Spec& spec, const BaseOptions& options) {
      return make_modes({spec.number("widening", 0.1, 10.0, 1.0), 0,
                         spec.integer("starts", 1, 1000, 0), spec.integer("batches", 1, 100, 0)},
                        options);
    });

}  // namespace

std::unique_ptr<BaseRule> make_modes(const ModeOptions& options, const BaseOptions& of) {
  return std::make_unique<Modes>(options, of.one_density);
}

}  // namespace crais
