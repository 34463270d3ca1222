// A normal at each mode that a search from many starts finds. The normals are the parts of a
// partition of unity.
//
// The search also estimates the modes that no start has reached: if f_1 of n climbs ended where no
// other climb did, about f_1 / n of further starts would lead to unseen modes.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "bases/climb.h"
#include "core/rng.h"

namespace crais {
namespace {

constexpr double kUnseen = 0.12;  // limit of the share of further starts that lead to unseen modes
constexpr double kSerious = 6.0;  // nats below the greatest mass; modes further below are light
constexpr double kUnseenMass = 0.05;
constexpr int64_t kDearest = 40'000;  // evaluations; no further batch of starts would exceed them
constexpr int64_t kMostBatches = 16;
constexpr double kScales[] = {1, 3, 10, 30};  // of starts, for a density without a prior

/// The modes of one problem among its climbs, heaviest first.
struct Found {
  std::vector<int64_t> climbs;  // for each mode, the index of a climb that ended there
  std::vector<int64_t> light;   // the same for modes that are dropped
  double unseen = 0;            // estimated share of further starts that would lead elsewhere
  double unseen_mass = 0;       // estimated mass elsewhere, relative to that of the modes found
  int64_t ends = 0;             // climbs that arrived at a mode

  /// True if the search has most likely seen every mode that one start in fifty reaches.
  bool is_enough(int64_t dim) const {
    const int64_t ends_a_mode = dim > kManyDims ? 4 : 8;
    return unseen == 0 && ends >= ends_a_mode * static_cast<int64_t>(climbs.size());
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
  if (2 * once >= ends)  // else these are most likely climbs that ended early
    found.unseen_mass = mass_once * (once - 1) / (2 * (twice + 1)) / total;
}

/// A normal of one problem.
struct Part {
  int64_t problem;
  at::Tensor loc, root;  // [D], [D,D]
  double log_mass;
};

/// Evaluations that `reaches` takes of each end of each column of a normal.
int reach_iterations(int64_t dim) { return dim > kManyDims ? 1 : 4; }

/// The distance to which the density reaches on both sides of each normal's middle, along each
/// column of its root and in units of it, before it falls by half a nat: [R,2,D] float64. It is 1
/// if the density is the normal, and differs near a kink, on a plain or on a ridge. Cost: 2 D
/// reach_iterations densities a normal.
at::Tensor reaches(const Target& rows, const at::Tensor& loc, const at::Tensor& root, Cost& cost) {
  constexpr double kFall = 0.5, kFactor = 4, kMost = 64;
  const int iterations = reach_iterations(rows.dim());
  const at::Tensor columns = root.transpose(1, 2);                              // [R,D,D]
  const at::Tensor sides = at::cat({columns, -columns}, 1).to(root.options());  // [R,2D,D]
  const at::Tensor top = rows.log_density(loc.unsqueeze(1)).to(at::kDouble);
  at::Tensor reach = at::ones({loc.size(0), sides.size(1)}, top.options());
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor points = loc.unsqueeze(1) + reach.to(root.scalar_type()).unsqueeze(2) * sides;
    const at::Tensor fall = (top - rows.log_density(points).to(at::kDouble))
                                .nan_to_num(kMost)
                                .clamp(kFall / (kFactor * kFactor), kFall * kFactor * kFactor);
    reach = (reach * (kFall / fall).sqrt()).clamp(1 / kMost, kMost);  // exact for a parabola
    cost += Cost{points.size(0) * points.size(1), 0};
  }
  return reach.view({loc.size(0), 2, loc.size(1)});
}

/// `part` with each column of its root multiplied by `scale` [D].
Part stretched(const Part& part, const at::Tensor& scale) {
  return {part.problem, part.loc, part.root * scale.to(part.root.scalar_type()).unsqueeze(0),
          part.log_mass + scale.log().sum().item<double>()};
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
      is_not.index_copy_(
          0, index,
          log_volume(before.index_select(0, index)) - log_volume(mode.root.index_select(0, index)) <
              kAlike);
    }
    join(problems, mode.z, before, mode.log_mass + log_volume(before) - log_volume(mode.root),
         is_not, false);
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

class Modes : public BaseRule {
 public:
  Modes(double widening, int64_t rounds, int64_t starts, int64_t most)
      : widening_(widening), rounds_(rounds), starts_(starts), most_(most) {}

  Base build(const Target& target, at::Generator& rng) const override {
    if (!target.can_select())
      return BaseRegistry::instance().make("base", "laplace")->build(target, rng);
    const AffineMap guess = first_guess(target);
    const int64_t problems = target.num_problems();
    const bool is_bare = target.is_replicated();
    const int64_t starts = starts_in(target);
    Cost cost;
    Fits fits;
    std::vector<Found> found;
    for (int64_t batch = 0; batch < (is_bare ? kMostBatches : 1); ++batch) {
      const at::Tensor from = start_points(target, guess, starts, batch == 0, rng, cost);
      if (is_bare && problems == 1 && target.dim() > kManyDims)
        climb_with_one(target, from.squeeze(0), fits, cost);
      else
        climb_all(target, from, fits, cost);
      found = sorted_out(fits);
      if (cost.densities / (batch + 1) * (batch + 2) > kDearest ||
          std::all_of(found.begin(), found.end(),
                      [&](const Found& f) { return f.is_enough(target.dim()); }))
        break;
    }
    return assembled(target, fits, found, guess, cost);
  }

  /// Cost of one batch that finds one mode.
  std::optional<double> expected_cost(const Target& target) const override {
    const int64_t starts = starts_in(target), steps = steps_a_round(target);
    const int64_t climbs =
        starts * (1 + std::min(rounds_, kUsualRounds) * (target.curvature_cost() + steps));
    const int64_t draws = target.is_replicated() ? 0 : (starts - 1) / 2 * kDrawsAStart;
    return static_cast<double>(draws + climbs + 2 * target.dim() * reach_iterations(target.dim()));
  }

 private:
  void climb_all(const Target& target, const at::Tensor& from, Fits& fits, Cost& cost) const {
    const int64_t problems = from.size(0);
    const at::Tensor rows =
        at::arange(problems, target.options().dtype(at::kLong)).repeat_interleave(from.size(1));
    const auto many = target.select(rows);
    fits.add(*many, climb(*many, from.flatten(0, 1), rounds_, kArrived, cost), problems, cost);
  }

  /// Climbs from the starts `from` [S,D] of one problem. The first climb takes curvatures of its
  /// own. The others take that of its mode, until they have arrived there. Those that do not arrive
  /// are elsewhere, and go on with curvatures of their own.
  void climb_with_one(const Target& one, const at::Tensor& from, Fits& fits, Cost& cost) const {
    constexpr int64_t kSteps = 48;
    constexpr double kSame = 0.1;  // squared standard deviations
    const Mode first = climb(one, from.slice(0, 0, 1), rounds_, kArrived, cost);
    fits.add(one, first, 1, cost);
    at::Tensor rest = from.slice(0, 1);
    if (!first.failed.item<bool>()) {
      rest = climb_with(one, rest, first.root, kSteps, cost);
      const at::Tensor e = AffineMap(first.z, first.root).to_e(rest.unsqueeze(0));
      const at::Tensor is_same = e.square().sum(-1).squeeze(0) < kSame;
      const int64_t same = is_same.sum().item<int64_t>();
      if (same > 0) fits.add(one, first.repeated(same), 1, cost);
      rest = rest.index_select(0, at::nonzero(~is_same).flatten());
    }
    if (rest.size(0) > 0) climb_all(one, rest.unsqueeze(0), fits, cost);
  }

  int64_t starts_in(const Target& target) const {
    if (starts_ > 0) return starts_;
    const bool is_bare = target.is_replicated();
    return std::clamp<int64_t>((is_bare ? 1500 : 300) / target.curvature_cost(), 4,
                               is_bare ? 128 : 16);
  }

  /// Starts [P,S,D]: draws of the prior, some of them the most probable of many. The first batch
  /// also holds the guess and the target's known points.
  static at::Tensor start_points(const Target& target, const AffineMap& guess, int64_t starts,
                                 bool with_guess, at::Generator& rng, Cost& cost) {
    const int64_t problems = target.num_problems(), dim = target.dim();
    const AffineMap prior = target.prior_base();
    const at::Tensor e = fill_normal(at::empty({problems, starts, dim}, target.options()), rng);
    at::Tensor z = prior.to_z(e).clone();
    if (target.is_replicated()) {
      const int64_t count = dim > kManyDims ? 2 : static_cast<int64_t>(std::size(kScales));
      for (int64_t s = 0; s < starts; ++s) z.select(1, s).mul_(kScales[s % count]);
    } else {
      for (int64_t s = 2; s < starts; s += 2)
        z.select(1, s).copy_(most_probable_draw(target, kDrawsAStart, rng, cost));
    }
    if (!with_guess) return z;
    z.select(1, 0).copy_(guess.loc());
    const std::optional<at::Tensor> known = target.starts();
    if (!known) return z;
    return at::cat({known->to(z.options()).expand({problems, known->size(0), dim}), z}, 1);
  }

  std::vector<Found> sorted_out(const Fits& fits) const {
    const at::Tensor distance = mutual_distances(fits.z, fits.root).cpu().contiguous();
    const at::Tensor mass = fits.log_mass.cpu().contiguous(), failed = fits.failed.cpu();
    const at::Tensor log_det = log_volume(fits.root).cpu().contiguous();
    const at::Tensor ends = fits.is_end.cpu();
    const auto far = distance.accessor<double, 3>();
    const auto m = mass.accessor<double, 2>(), det = log_det.accessor<double, 2>();
    const int64_t problems = mass.size(0), count = mass.size(1);
    const double near = farthest_of_one_mode(fits.z.size(2));
    std::vector<Found> all(static_cast<size_t>(problems));
    for (int64_t p = 0; p < problems; ++p) {
      std::vector<int64_t> order;
      for (int64_t s = 0; s < count; ++s)
        if (!failed[p][s].item<bool>()) order.push_back(s);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return m[p][a] > m[p][b]; });
      const auto are_one = [&](int64_t a, int64_t b) {
        return std::max(far[p][a][b], far[p][b][a]) < near &&
               std::abs(det[p][a] - det[p][b]) < kAlike;
      };
      Found& found = all[static_cast<size_t>(p)];
      std::vector<int64_t> arrivals;
      for (const int64_t s : order) {
        const int64_t arrived = ends[p][s].item<bool>() ? 1 : 0;
        found.ends += arrived;
        const auto climb = std::find_if(found.climbs.begin(), found.climbs.end(),
                                        [&](int64_t k) { return are_one(k, s); });
        if (climb == found.climbs.end()) {
          found.climbs.push_back(s);
          arrivals.push_back(arrived);
        } else {
          arrivals[static_cast<size_t>(climb - found.climbs.begin())] += arrived;
        }
      }
      std::vector<double> masses;  // relative to the heaviest
      for (const int64_t s : found.climbs)
        masses.push_back(std::exp(m[p][s] - m[p][found.climbs[0]]));
      estimate_unseen(found, arrivals, masses);
      keep_heaviest(found, [&](int64_t s) { return m[p][s]; });
    }
    return all;
  }

  /// Drops modes of less than a thousandth of the mass: their neighbours cover them.
  template <typename Mass>
  void keep_heaviest(Found& found, const Mass& mass) const {
    constexpr double kLeast = 1e-3;
    size_t kept = 0;
    for (const int64_t s : found.climbs) {
      if (std::exp(mass(s) - mass(found.climbs[0])) < kLeast || kept == static_cast<size_t>(most_))
        break;
      ++kept;
    }
    if (kept == static_cast<size_t>(most_) && found.climbs.size() > kept) found.unseen = 1;
    found.light.assign(found.climbs.begin() + static_cast<int64_t>(kept), found.climbs.end());
    found.climbs.resize(kept);
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
        parts.push_back(stretched(parts[r], wider));
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
    std::vector<uint8_t> failed, ambiguous;
    for (size_t i = 0; i < found.size(); ++i) {
      failed.push_back(found[i].climbs.empty());
      ambiguous.push_back(found[i].unseen > kUnseen ||
                          (target.is_replicated() && found[i].unseen_mass > kUnseenMass));
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
    base.partition = Partition::by_mass(at::tensor(problem, at::kLong).to(options.device()),
                                        at::tensor(log_mass, at::kDouble).to(options.device()),
                                        static_cast<int64_t>(found.size()));
    return base;
  }

  /// A longer reach gets a part of its own. Among many directions some are skewed, and such a part
  /// would take half of all chains.
  static double far_reach(int64_t dim) { return dim > kManyDims ? 4 : 2; }

  static constexpr double kArrived = 1e-3;  // square of the last Newton step, standard deviations

  double widening_;
  int64_t rounds_, starts_, most_;
};

const Enrol<BaseRegistry> kEnrolModesBase(
    "modes[:W]",
    "a Laplace fit, its standard deviations times W, at each mode that a search finds; chains "
    "start from every one, and their estimates add up (rounds=12 of Newton's method, starts=N: 4 "
    "to 128, by what they cost; most=N modes of a problem: 64)",
    "modes:1.1,starts=4", [](Spec& spec) {
      const double widening = spec.number("widening", 0.1, 10.0, 1.0);
      const int64_t rounds = spec.integer("rounds", 1, 1000, 12);
      const int64_t starts = spec.integer("starts", 1, 1000, 0);
      return std::make_unique<Modes>(widening, rounds, starts, spec.integer("most", 1, 1000, 64));
    });

}  // namespace
}  // namespace crais
