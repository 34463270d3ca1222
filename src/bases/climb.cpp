#include "bases/climb.h"

#include <algorithm>
#include <vector>

#include "util/memory.h"

namespace crais {

int64_t steps_a_round(const Target& target) {
  return std::clamp<int64_t>(target.curvature_cost() / 8, 4, 32);
}

at::Tensor spread(const at::Tensor& values, int64_t count, const at::Tensor& index,
                  double otherwise) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = count;
  return at::full(shape, otherwise, values.options()).index_copy(0, index, values);
}

std::string specification(const std::string& rule, const ModeOptions& options) {
  std::string counts;
  if (options.rounds > 0) counts += c10::str(",rounds=", options.rounds);
  if (options.starts > 0) counts += c10::str(",starts=", options.starts);
  if (options.batches > 0) counts += c10::str(",batches=", options.batches);
  if (counts.empty() && options.widening == 1) return rule;
  return c10::str(rule, ":", options.widening, counts);
}

Mode climb(const Target& target, const at::Tensor& start, int64_t rounds, double until, Cost& cost,
           bool by_degrees) {
  const int64_t problems = start.size(0);
  require_memory(5 * 8.0 * static_cast<double>(start.numel() * start.size(1)),  // roots, a factor
                 c10::str("a `base` (not prior) or `witness` in ", start.size(1), " dimensions"));
  Climb climber(target, start);
  cost += Cost::with_gradient(problems);
  Mode mode{at::empty_like(start),
            at::empty({problems, start.size(1), start.size(1)}, start.options()),
            at::empty({problems, start.size(1), start.size(1)}, start.options()),
            at::empty({problems}, start.options().dtype(at::kDouble)),
            at::empty({problems}, start.options().dtype(at::kBool)),
            at::empty({problems}, start.options().dtype(at::kDouble))};
  at::Tensor place = at::arange(problems, start.options().dtype(at::kLong));  // [Q], still climbing
  at::Tensor failed = climber.not_finite();
  Factored factored;
  at::Tensor earlier, going;
  for (int64_t round = 0; round < rounds; ++round) {
    if (round > 0) earlier = factored.covariance_root;
    factored = climber.curvature();
    if (round == 0) {
      earlier = factored.covariance_root;
      failed = failed | climber.is_at_kink(factored.covariance_root, cost);
    }
    cost += Cost::with_gradient(place.size(0) * target.curvature_cost());
    failed = failed | factored.failed;
    const at::Tensor stops = failed | (climber.decrement(factored.covariance_root) < until) |
                             (climber.is_stuck() & (until > 0));
    going = at::nonzero(~stops).flatten();
    if (going.size(0) == 0) break;
    if (going.size(0) < place.size(0) && target.traits().can_select) {
      mode.put(place, climber, factored.covariance_root, earlier, failed);
      climber.narrow(going);
      place = place.index_select(0, going);
      failed = failed.index_select(0, going);
      factored.covariance_root = factored.covariance_root.index_select(0, going);
      earlier = earlier.index_select(0, going);
    }
    climber.steps(factored.covariance_root, steps_a_round(target),
                  by_degrees || target.traits().has_prior);
    cost += Cost::with_gradient(place.size(0) * steps_a_round(target));
  }
  mode.put(place, climber, factored.covariance_root, earlier, failed);
  if (by_degrees && going.size(0) > 0) mode.decrement.index_fill_(0, place, INFINITY);
  return mode;
}

NormalMixture with_modes(const Target& one, NormalMixture known, const at::Tensor& start,
                         double far, double until, Cost& cost) {
  const auto rows = one.select(at::zeros({start.size(0)}, start.options().dtype(at::kLong)));
  const Mode ends = climb(*rows, start, kMostRounds, until, cost, /*by_degrees=*/true);
  const AffineMap fits(on_cpu(ends.z), on_cpu(ends.root));
  const at::Tensor peak = on_cpu(ends.log_mass) - fits.log_abs_det(),
                   mass = on_cpu(ends.log_mass) +
                          0.5 * static_cast<double>(start.size(1)) * std::log(2 * M_PI),
                   least = at::logsumexp(known.log_share, 0) + std::log(kLeastShare),
                   is_mode = ~ends.failed.cpu() & (ends.decrement.cpu() < until) & (mass > least);
  while (true) {
    const at::Tensor is_new = is_mode & (peak - log_density(known, fits.loc()) > far);
    if (!is_new.any().item<bool>()) break;
    const at::Tensor i = mass.masked_fill(~is_new, -INFINITY).argmax().unsqueeze(0);
    known = {at::cat({known.loc, fits.loc().index_select(0, i)}),
             at::cat({known.root, fits.matrix().index_select(0, i)}),
             at::cat({known.log_share, mass.index_select(0, i)})};
  }
  known.log_share = known.log_share - at::logsumexp(known.log_share, 0);
  return known;
}

double farthest_of_one_mode(int64_t dim) { return 1 + 0.05 * static_cast<double>(dim); }

}  // namespace crais
