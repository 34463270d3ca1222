#include "evaluation/force_choice.h"

#include <algorithm>
#include <cmath>

#include "evaluation/base_candidates.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr int64_t kParticles = 4;  // for each pilot problem
constexpr int64_t kStepSizes = 7;  // 1, 1/2, ..., 1/64: in whitened coordinates one of them fits
// Of mean acceptance. Cheap forces mostly save a fifth of the time or more, and on so few particles
// what they lose is known to 0.004.
constexpr double kMostLost = 0.02;
constexpr double kMostOff = 1e-3;    // nats on average, of log-densities of a thousand or less
constexpr int64_t kBaseCost = 2000;  // evaluations, of all bases; at least one is fitted

/// What forces are judged by.
struct Pilot {
  at::Tensor log_density;  // [P,K] float64
  at::Tensor acceptance;   // mean, of a move at each step size
};

/// Of the same particles of each problem and the same random numbers, whatever the forces.
Pilot make_pilot(const EstimatorParts& parts, const Problem& problem, int64_t particles,
                 Cost& cost) {
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kPilot, kSharedStream - 2);
  const Particles start = problem.evaluate(problem.draw(particles, rng));
  cost += problem.cost_of(particles);
  const at::Tensor beta = at::ones({problem.num_problems()}, problem.log_center().options());
  // Every path ends at the target, and those that a pilot learns know nothing yet.
  const auto path = PathRegistry::instance().make("path", "geometric");
  std::vector<at::Tensor> means;
  for (int64_t i = 0; i < kStepSizes; ++i) {
    const Moved moved = parts.transition->step(problem, *path, start, beta,
                                               beta * std::ldexp(1.0, static_cast<int>(-i)), rng);
    cost += parts.transition->evaluations_per_step() * problem.cost_of(particles);
    means.push_back(moved.accept_prob.mean());
  }
  return {start.log_gamma, at::stack(means)};
}

/// Where moves are compared: near the posteriors of the first problems, as many as their bases
/// allow.
AffineMap base_of(const EstimatorParts& parts, const Target& pilots, Cost& cost) {
  const bool is_asked = parts.options.base != "auto";
  if (!is_asked)
    if (const auto encoded = pilots.amortised_base()) return *encoded;
  const std::string name = is_asked ? parts.options.base : base_candidates(pilots).front();
  const auto rule = BaseRegistry::instance().make("base", name);
  const auto fitted = [&](const Target& target) {
    Base base = fit_base(parts, *rule, target, kSharedStream);
    cost += base.cost;
    return base;
  };
  if (!pilots.can_select()) return fitted(pilots).main_parts();
  const Base first = fitted(*pilots.slice(0, 1));
  const int64_t few =
      std::min(pilots.num_problems(), kBaseCost / std::max<int64_t>(1, first.cost.densities));
  return few > 1 ? fitted(*pilots.slice(0, few)).main_parts() : first.main_parts();
}

bool is_as_good(const EstimatorParts& parts, const Target& pilots, Cost& cost) {
  const AffineMap base = base_of(parts, pilots, cost);
  const auto exact = pilots.slice(0, base.num_problems());
  const int64_t particles = kParticles * pilots.num_problems() / base.num_problems();
  const auto of = [&](const std::shared_ptr<const Target>& target) {
    return make_pilot(parts, Problem(target, base), particles, cost);
  };
  const Pilot with = of(exact), cheap = of(exact->with_forces(at::kBFloat16));
  const double lost = (with.acceptance - cheap.acceptance).max().item<double>();
  const double off = (with.log_density - cheap.log_density).abs().mean().item<double>();
  const double size = with.log_density.abs().mean().item<double>();
  return lost <= kMostLost && off <= kMostOff * std::max(1.0, size / 1000);
}

}  // namespace

std::optional<at::ScalarType> choose_forces(const EstimatorParts& parts, const Target& pilots,
                                            Cost& cost) {
  const std::string& asked = parts.options.force_dtype;
  if (asked == "float32" || parts.num_anneals() == 0) return {};
  if (asked == "auto" && !pilots.forces_pay(at::kBFloat16)) return {};
  const auto cheap = pilots.with_forces(at::kBFloat16);
  if (asked == "auto")
    return cheap && is_as_good(parts, pilots, cost) ? std::optional(at::kBFloat16) : std::nullopt;
  if (!cheap)
    throw argument_error(
        "`force_dtype` bfloat16: this model or target has its forces in its own type alone: leave "
        "it out");
  return at::kBFloat16;
}

}  // namespace crais
