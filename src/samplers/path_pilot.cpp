#include "samplers/path_pilot.h"

#include <c10/core/GradMode.h>

#include <cmath>

#include "core/log_math.h"
#include "samplers/pilot_step_sizes.h"
#include "util/interrupt.h"

namespace crais {
namespace {

/// The latest knot of a descent, as a path that ignores beta.
class LastKnot : public Path {
 public:
  LastKnot(const Path& path, const Descent& descent)
      : Path(path.shared_divergence()), descent_(descent) {}

  PathPoint at(const at::Tensor& /*beta*/, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    const Tilts tilts = descent_.at((log_gamma - log_q0).cpu());
    const at::Tensor slope = tilts.w.to(log_q0.device());
    return {log_q0 + tilts.h.to(log_q0.device()), 1 - slope, slope};
  }

 private:
  const Descent& descent_;
};

/// A range that leaves room for later particles than those at kappa [C,K]: their present range,
/// extended by its length on both sides.
at::Tensor range_of(const at::Tensor& kappa) {
  const at::Tensor low = std::get<0>(kappa.min(1)), high = std::get<0>(kappa.max(1));
  const at::Tensor room = (high - low) + at::maximum(low.abs(), high.abs()) + 100;
  return at::stack({low - room, high + room});
}

}  // namespace

std::shared_ptr<const DescentPath> learn_path(const Problem& problem, const Path& path,
                                              const Transition& transition,
                                              const PilotOptions& options, at::Generator& rng,
                                              Cost& cost) {
  const c10::NoGradGuard no_grad;
  constexpr double kArrived = 0.9;  // overlap with the target, as the ESS of e^v
  const auto* descending = dynamic_cast<const DescentPath*>(&path);
  TORCH_CHECK(descending, "learn_path: the path has nothing to learn");
  const DescentOptions& wanted = descending->options();
  const Divergence& divergence = path.divergence();
  const at::Tensor like = problem.base().log_abs_det();
  PilotStepSizes step_sizes(options, transition, like);
  const auto pool = [&](const at::Tensor& statistic) {  // [P] -> [C]
    return options.shared ? statistic.mean().view({1}) : statistic;
  };

  Particles particles = problem.start(options.num_particles, rng);
  const Cost once = problem.cost_of(options.num_particles);
  cost += once;
  at::Tensor kappa = (particles.log_gamma - particles.log_q0).cpu();
  Descent descent(path.shared_divergence(),
                  range_of(options.shared ? kappa.reshape({1, -1}) : kappa));
  const LastKnot last_knot(path, descent);
  for (int64_t steps = 0;; ++steps) {
    const at::Tensor v = kappa - descent.at(kappa).h, overlap = pool(ess(v));
    const at::Tensor arrived = (overlap >= kArrived) & (steps > 0);
    if (arrived.all().item<bool>()) return descending->along(descent);
    const auto fail = [&](ScheduleError::Reason reason, const char* what, const char* remedy) {
      throw ScheduleError(reason, 0, steps,
                          c10::str("the path's pilot ", what, " after ", steps, " steps (",
                                   wanted.name, "): the particles' overlap with the target is ",
                                   overlap.min().item<double>(), "; use ", remedy));
    };
    if (steps >= wanted.max_knots)
      fail(ScheduleError::Reason::kUnfinished, "has not arrived",
           "a base nearer to it, another `path`, or more of its knots");
    const at::Tensor log_ratio = pool(log_mean_exp(v));
    const at::Tensor y = v - log_ratio.unsqueeze(1), uniform = log_normalise(at::zeros_like(y));
    const at::Tensor mean = pool(divergence.g(y).mean(1));
    const at::Tensor log_variance = divergence.log_variance(y, uniform, uniform);
    const at::Tensor pooled = options.shared ? log_mean_exp(log_variance).view({1}) : log_variance;
    // If g bends more than once within a step, the particles do not determine the step well.
    const at::Tensor longest = 1 / pool(divergence.slope(y).mean(1));
    const at::Tensor theta = at::minimum((std::log(wanted.length) - 0.5 * pooled).exp(), longest);
    if (!(arrived | ((theta > 0) & theta.isfinite() & mean.isfinite())).all().item<bool>())
      fail(ScheduleError::Reason::kStalled, "stands still",
           "a `path` whose divergence is finite there, or more `pilot_chains`");
    const auto of_moving = [&](const at::Tensor& x) { return at::where(arrived, 0.0, x); };
    descent.advance(of_moving(log_ratio), of_moving(mean), of_moving(theta));

    stop_if_interrupted();
    const at::Tensor step_size = step_sizes.at(steps).to(like.device()).expand_as(like);
    const Moved moved =
        transition.step(problem, last_knot, particles, at::full_like(like, 0.5), step_size, rng);
    cost += transition.evaluations_per_step() * once;
    particles = moved.particles;
    kappa = (particles.log_gamma - particles.log_q0).cpu();
    step_sizes.observe(steps, moved.accept_prob.mean(-1));
  }
}

}  // namespace crais
