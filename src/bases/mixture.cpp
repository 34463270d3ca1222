// Normals that cover a density of any shape: several modes, ridges, funnels. Each is a part of a
// partition of unity, near normal within, and the parts' normalisers add up.
//
// Candidates are the modes that a search finds, and normals fitted to particles of pilots that have
// settled under the target. Trials choose: the estimate of each candidate is a lower bound on
// average, so the highest is the best. What is left settles again, and is fitted anew.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bases/base.h"
#include "bases/normal_mixture.h"
#include "core/log_math.h"
#include "core/rng.h"
#include "core/transition.h"
#include "paths/power_mean.h"
#include "samplers/plan.h"
#include "targets/partitioned.h"
#include "util/error.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr int64_t kMostDims = 128;    // beyond, covariances are not to be had from so few particles
constexpr int64_t kFewestChains = 4;  // of a part and group
// Groups of a trial's chains: their spread is its error, so few of them would crown lucky trials.
constexpr int64_t kFewestGroups = 4, kMostGroups = 16;

/// Normals as the target of their parts and the base of each.
struct Parts {
  AffineMap map;        // [J]
  Partition partition;  // of one problem
  std::shared_ptr<const PartitionedTarget> target;

  Parts(const Target& one, const AffineMap& normals, const at::Tensor& log_share)
      : map(normals),
        partition{at::zeros({normals.num_problems()}, log_share.options().dtype(at::kLong)),
                  log_share, 1},
        target(std::make_shared<PartitionedTarget>(one, map, partition)) {}
};

/// What a trial of some normals has come to.
struct Trial {
  std::shared_ptr<const Parts> parts;
  double value = -std::numeric_limits<double>::infinity();  // estimate of log Z, nats
  double error = 0;
  at::Tensor z;           // [N,D] particles of the density, equally weighted
  at::Tensor step_sizes;  // [J] float64: of each part at its end
  bool may_miss = false;  // the search that gave the parts may have missed modes

  /// How far up it is, its error allowed for.
  double height() const {
    return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value - 3 * error;
  }
};

class Mixture : public BaseRule {
 public:
  Mixture(int64_t particles, int64_t rounds, double widening)
      : particles_(particles), rounds_(rounds), widening_(widening) {}

  Base build(const Target& target, at::Generator& rng) const override {
    const c10::NoGradGuard no_grad;
    if (!target.can_select())
      return BaseRegistry::instance().make("base", "pilot")->build(target, rng);
    std::vector<Base> fits;
    const int64_t problems = target.num_problems();
    for (int64_t p = 0; p < (target.is_replicated() ? 1 : problems); ++p)
      fits.push_back(fitted(*target.slice(p, p + 1), rng));
    return target.is_replicated() ? repeated(fits.front(), problems) : together(fits);
  }

 private:
  Base fitted(const Target& one, at::Generator& rng) const {
    Cost cost;
    Base modes = BaseRegistry::instance().make("base", "modes")->build(one, rng);
    cost += modes.cost;
    const at::TensorOptions wide = one.options().dtype(at::kDouble);
    const at::Tensor share = modes.partition ? modes.partition->log_share : at::zeros({1}, wide);
    Trial best;
    try {
      best = tried(one, modes.map.widened(widening_), share, rng, cost);
      best.may_miss = modes.ambiguous.any().item<bool>();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
    }
    if (one.dim() <= kMostDims) improve(one, best, rng, cost);
    if (!best.parts) return Base(first_guess(one));
    Base base(best.parts->map, at::zeros({1}, wide.dtype(at::kBool)), cost);
    base.ambiguous = at::full({1}, best.may_miss, wide.dtype(at::kBool));
    base.partition = best.parts->partition;
    return base;
  }

  void improve(const Target& one, Trial& best, at::Generator& rng, Cost& cost) const {
    if (auto rough = from_prior(one, rng, cost); rough && rough->height() > best.height())
      best = std::move(*rough);
    if (!best.parts) return;
    for (int64_t round = 0; round < rounds_; ++round) {
      const double before = best.height();
      const at::Tensor draws = settled(best, rng, cost);
      at::Generator host = on_host(rng, best.z);
      std::vector<NormalMixture> candidates;
      const int64_t parts = best.parts->map.num_problems();
      if (parts > 1) candidates.push_back(refit_normals(draws, normals_of(*best.parts)));
      for (const int64_t count : {1, 8, 16})
        if (count >= parts || count == 1) candidates.push_back(fit_normals(draws, count, host));
      std::optional<Trial> next;
      for (const NormalMixture& mixture : candidates) {
        Trial trial = tried(one, map_of(mixture, one).widened(widening_),
                            mixture.log_share.to(one.options().device()), rng, cost);
        if (!next || trial.height() > next->height()) next = std::move(trial);
      }
      const bool is_higher = next->height() > best.height();
      const bool has_settled = best.error < kSmall && std::abs(next->value - best.value) < kSmall;
      if (is_higher) best = std::move(*next);
      if (has_settled && best.height() < before + kSmall) break;
    }
  }

  /// SMC from the prior, and the moments of where it ends.
  std::optional<Trial> from_prior(const Target& one, at::Generator& rng, Cost& cost) const {
    try {
      const AffineMap prior = one.prior_base();
      const at::Tensor share = at::zeros({1}, one.options().dtype(at::kDouble));
      const Trial start = tried(one, prior, share, rng, cost, 3 * kSteps);
      const at::Tensor z = start.z.to(at::kCPU, at::kDouble);
      at::Generator host = on_host(rng, start.z);
      const NormalMixture normal = fit_normals(z, 1, host);
      Trial trial = tried(one, map_of(normal, one).widened(widening_), share, rng, cost);
      if (trial.height() < start.height()) return start;
      return trial;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      return {};
    }
  }

  Trial tried(const Target& one, const AffineMap& normals, const at::Tensor& log_share,
              at::Generator& rng, Cost& cost, int64_t steps = kSteps) const {
    Trial trial;
    trial.parts = std::make_shared<Parts>(one, normals, log_share);
    const int64_t parts = normals.num_problems();
    const int64_t groups =
        std::clamp(particles_ / parts / kFewestChains, kFewestGroups, kMostGroups);
    const int64_t chains = std::max(kFewestChains, particles_ / parts / groups);
    // Groups are rows of their own: resampling would tie them together.
    const at::Tensor rows =
        at::arange(parts, trial.parts->partition.problem.options()).repeat_interleave(groups);
    const Problem problem(trial.parts->target->select(rows), trial.parts->map.select(rows));
    ScheduleOptions schedule;
    schedule.steps = steps;
    PilotOptions options;
    options.num_particles = chains;
    options.shared = false;
    options.resampling = resampling_.get();
    const PilotRun run = run_pilot(
        problem, *path_, *ScheduleRegistry::instance().make("schedule", "linear", schedule),
        *transition_, options, rng);
    cost += run.run.cost;
    trial.step_sizes = run.plan.step_sizes[-1]
                           .to(problem.base().options().device())
                           .view({parts, groups})
                           .log()
                           .mean(1)
                           .exp();
    const at::Tensor log_w = run.run.log_w;  // [JG,K]
    const at::Tensor of_parts = log_mean_exp(log_w).view({parts, groups});
    const at::Tensor totals = at::logsumexp(of_parts, 0);  // [G]
    trial.value = totals.mean().item<double>();
    trial.error = error_of(totals, of_parts);
    const at::Tensor weights = at::softmax(log_w.flatten(), 0);
    const at::Tensor points = (at::arange(particles_, weights.options()) +
                               fill_uniform(at::empty({1}, weights.options()), rng)) /
                              static_cast<double>(particles_);
    const at::Tensor index =
        at::searchsorted(weights.cumsum(0), points).clamp_max(weights.size(0) - 1);
    trial.z = problem.base().to_z(run.run.particles.e).flatten(0, 1).index_select(0, index);
    return trial;
  }

  /// Standard error of a trial, nats: of the totals of its groups, or from the variances of its
  /// parts, which are independent of each other, where these say more.
  static double error_of(const at::Tensor& totals, const at::Tensor& of_parts) {
    const at::Tensor relative = (of_parts - log_mean_exp(totals)).exp();
    const double by_parts = relative.var(1).sum().item<double>();
    const double by_totals = totals.var().item<double>();
    return std::sqrt(std::max(by_parts, by_totals) / static_cast<double>(totals.size(0)));
  }

  /// A generator for what is fitted on the CPU, seeded from one on the device of `like`.
  static at::Generator on_host(at::Generator& rng, const at::Tensor& like) {
    const at::Tensor u = fill_uniform(at::empty({1}, like.options().dtype(at::kDouble)), rng);
    return make_generator(static_cast<uint64_t>(u.item<double>() * 0x1p53));
  }

  /// Particles that move under the target, each in the coordinates of a part that it is given by
  /// chance in proportion to the part's responsibility: a Gibbs sampler of particles and labels.
  /// Returns what it passed through, [M,D] float64 on the CPU, and leaves the last in `trial`.
  at::Tensor settled(Trial& trial, at::Generator& rng, Cost& cost) const {
    constexpr int kSweeps = 6, kMoves = 10;
    constexpr double kLadder[] = {1, 1, 0.3, 3};  // of step sizes: several scales
    const Parts& parts = *trial.parts;
    const int64_t count = parts.map.num_problems();
    const at::Tensor first = at::zeros({1}, parts.partition.problem.options());
    const auto whole =
        std::static_pointer_cast<const PartitionedTarget>(parts.target->select(first));
    at::Tensor log_steps = trial.step_sizes.log(), z = trial.z;
    std::vector<at::Tensor> passed;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const at::Tensor logs = whole->log_components(z.unsqueeze(0)).squeeze(1);  // [J,N]
      const at::Tensor gumbel = -(-fill_uniform(at::empty_like(logs), rng).log()).log();
      const at::Tensor label = (logs + gumbel).argmax(0);
      const AffineMap map = parts.map.select(label);
      const Problem problem(parts.target->select(label), map);
      Particles particles = problem.evaluate(map.to_e(z.unsqueeze(1)));
      cost += problem.cost_of(1);
      const at::Tensor beta = at::ones({z.size(0)}, log_steps.options());
      for (int move = 0; move < kMoves; ++move) {
        stop_if_interrupted();
        const double scale = kLadder[move % std::size(kLadder)];
        const at::Tensor steps = log_steps.exp().index_select(0, label) * scale;
        const Moved moved = transition_->step(problem, *path_, particles, beta, steps, rng);
        particles = moved.particles;
        cost += problem.cost_of(1);
        if (scale != 1) continue;
        const at::Tensor arrivals = at::bincount(label, {}, count).to(at::kDouble);
        const at::Tensor accepted =
            at::zeros_like(log_steps).scatter_add(0, label, moved.accept_prob.flatten());
        const at::Tensor apart =
            accepted / arrivals.clamp_min(1) - transition_->target_acceptance();
        log_steps = log_steps + 0.5 * at::where(arrivals > 0, apart, at::zeros_like(apart));
      }
      z = map.to_z(particles.e).squeeze(1);
      if (sweep > 0) passed.push_back(z.to(at::kCPU, at::kDouble));
    }
    trial.z = z;
    return at::cat(passed);
  }

  static NormalMixture normals_of(const Parts& parts) {
    return {parts.map.loc().to(at::kCPU, at::kDouble), parts.map.matrix().to(at::kCPU, at::kDouble),
            parts.partition.log_share.to(at::kCPU, at::kDouble)};
  }

  static AffineMap map_of(const NormalMixture& mixture, const Target& one) {
    const at::TensorOptions options = one.options();
    return {mixture.loc.to(options), mixture.root.to(options).tril()};
  }

  /// The fit of one replicate, for all of them.
  static Base repeated(const Base& one, int64_t problems) {
    const int64_t parts = one.map.num_problems();
    const at::Tensor rows =
        at::arange(parts, one.fell_back.options().dtype(at::kLong)).repeat({problems});
    Base base(one.map.select(rows), one.fell_back.expand({problems}), one.cost);
    base.ambiguous = one.ambiguous.expand({problems});
    if (one.partition && parts > 1)
      base.partition = Partition{at::arange(problems, rows.options()).repeat_interleave(parts),
                                 one.partition->log_share.index_select(0, rows), problems};
    return base;
  }

  static Base together(const std::vector<Base>& fits) {
    std::vector<at::Tensor> loc, matrix, failed, ambiguous, problem, log_share;
    Cost cost;
    for (size_t p = 0; p < fits.size(); ++p) {
      const Base& fit = fits[p];
      const int64_t parts = fit.map.num_problems();
      loc.push_back(fit.map.loc());
      matrix.push_back(fit.map.matrix());
      failed.push_back(fit.fell_back);
      ambiguous.push_back(fit.ambiguous);
      const at::TensorOptions wide = fit.fell_back.options().dtype(at::kDouble);
      problem.push_back(at::full({parts}, static_cast<int64_t>(p), wide.dtype(at::kLong)));
      log_share.push_back(fit.partition ? fit.partition->log_share : at::zeros({parts}, wide));
      cost += fit.cost;
    }
    Base base(AffineMap(at::cat(loc), at::cat(matrix)), at::cat(failed), cost);
    base.ambiguous = at::cat(ambiguous);
    if (base.map.num_problems() > base.num_problems())
      base.partition = Partition{at::cat(problem), at::cat(log_share), base.num_problems()};
    return base;
  }

  static constexpr int64_t kSteps = 32;   // of a trial
  static constexpr double kSmall = 0.02;  // nats

  int64_t particles_, rounds_;
  double widening_;
  std::shared_ptr<const Path> path_ = make_geometric_path();
  std::shared_ptr<const Transition> transition_ =
      TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
  std::shared_ptr<const Resampling> resampling_ =
      ResamplingRegistry::instance().make("resampling", "systematic:0.5");
};

const Enrol<BaseRegistry> kEnrolMixtureBase(
    "mixture",
    {"mixture[:N]",
     "normals that cover a density of any shape, fitted to N = 384 particles that have settled and "
     "to the modes of a search; chains start from every one, and their estimates add up (rounds=3, "
     "widening=1.1)",
     "mixture:32,rounds=1", [](Spec& spec) {
       const int64_t particles = spec.integer("particles", 16, 100'000, 384);
       const int64_t rounds = spec.integer("rounds", 0, 100, 3);
       return std::make_unique<Mixture>(particles, rounds, spec.number("widening", 0.1, 10.0, 1.1));
     }});

}  // namespace
}  // namespace crais
