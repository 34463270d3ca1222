// Pilots: runs that tune a plan and, for a path of steepest descent, find its constants first.
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "core/log_math.h"
#include "samplers/plan.h"
#include "schedules/fixed.h"

namespace crais {
namespace {

/// Step sizes that are fixed if the options say so. Else they follow the acceptance from one
/// temperature to the next (Robbins-Monro), and the object records for each temperature the step
/// size that its own acceptance calls for.
class PilotStepSizes : public StepSizes {
 public:
  /// @param like  [P]: one step size for each problem, or one for all problems (options.shared).
  PilotStepSizes(const PilotOptions& options, const Transition& transition, const at::Tensor& like)
      : target_(options.target_acceptance > 0 ? options.target_acceptance
                                              : transition.target_acceptance()),
        shared_(options.shared),
        log_step_(at::full_like(like, std::log(options.initial_step_size))) {
    if (options.step_size) fixed_ = at::full({1}, *options.step_size, at::kDouble);
  }

  at::Tensor at(int64_t /*index*/) const override {
    return fixed_.defined() ? fixed_ : log_step_.exp();
  }
  void observe(int64_t /*index*/, const at::Tensor& accept_prob) override {
    // Near d log(step) / d(acceptance): the error at one temperature is corrected at the next.
    constexpr double kGain = 1.0;
    constexpr double kWidest = 14.0;  // step sizes from 1e-6 to 1e6
    if (fixed_.defined()) return;
    const at::Tensor pooled = shared_ ? accept_prob.mean().expand_as(accept_prob) : accept_prob;
    log_step_ = (log_step_ + kGain * (pooled - target_)).clamp(-kWidest, kWidest);
    tuned_.push_back(log_step_);
  }

  /// The recorded step sizes, [T,P]. Requires step sizes that are not fixed.
  at::Tensor tuned() const { return at::stack(tuned_).exp(); }

 private:
  double target_;  // target acceptance
  bool shared_;
  at::Tensor fixed_;     // [1], or undefined
  at::Tensor log_step_;  // [P]
  std::vector<at::Tensor> tuned_;
};

/// Moves particles down the path, one transition a step. Each step makes log-weights of standard
/// deviation kLength (the mean over problems if plans are shared), and is frozen from the particles
/// before it. Learning ends when their overlap with the target is above kArrived. As in other
/// pilots, the particles are unweighted and count as draws of the current density.
///
/// Throws ScheduleError if steps have length 0, or if there are more steps than the path allows.
/// `cost` grows by 1 + L T evaluations for each pilot particle, T the number of steps so far.
std::shared_ptr<const DescentPath> learn_path(const Problem& problem, const Path& unlearned,
                                              const Transition& transition,
                                              const PilotOptions& options, at::Generator& rng,
                                              Cost& cost) {
  const c10::NoGradGuard no_grad;
  constexpr double kLength = 0.5;   // of a step: standard deviation of its log-weights, nats
  constexpr double kArrived = 0.9;  // overlap with the target, as the ESS of e^v
  const Divergence& divergence = unlearned.divergence();
  const at::Tensor like = problem.base().log_abs_det(), half = at::full_like(like, 0.5);
  PilotStepSizes step_sizes(options, transition, like);
  const auto pool = [&](const at::Tensor& statistic) {  // [P] -> [C]
    return options.shared ? statistic.mean().view({1}) : statistic;
  };

  Particles particles = problem.start(options.num_particles, rng);
  const Cost once = problem.cost_of(options.num_particles);
  cost += once;
  at::Tensor kappa = (particles.log_gamma - particles.log_q0).cpu();
  const at::Tensor rows = options.shared ? kappa.reshape({1, -1}) : kappa;
  const at::Tensor least = rows.amin(1), most = rows.amax(1);
  // Room for later particles: their present range, extended by its length on both sides.
  const at::Tensor room = (most - least) + at::maximum(least.abs(), most.abs()) + 100;
  const auto path =
      dynamic_cast<const DescentPath&>(unlearned).start(at::stack({least - room, most + room}));
  for (int64_t steps = 0;; ++steps) {
    const at::Tensor v = kappa - path->log_density(half.unsqueeze(1), at::zeros_like(kappa), kappa);
    const at::Tensor overlap = pool(ess(v)), arrived = (overlap >= kArrived) & (steps > 0);
    if (arrived.all().item<bool>()) {
      path->finish();
      return path;
    }
    const auto fail = [&](ScheduleError::Reason reason, const char* what, const char* remedy) {
      throw ScheduleError(reason, 0, steps,
                          c10::str("the path's pilot ", what, " after ", steps, " steps (",
                                   path->name, "): the particles' overlap with the target ", "is ",
                                   overlap.min().item<double>(), "; use ", remedy));
    };
    if (steps >= path->max_knots)
      fail(ScheduleError::Reason::kUnfinished, "has not arrived",
           "a base nearer to it, another `path`, or more of its knots");
    const at::Tensor log_ratio = pool(log_mean_exp(v));
    const at::Tensor y = v - log_ratio.unsqueeze(1), uniform = log_normalise(at::zeros_like(y));
    const at::Tensor mean = pool(divergence.g(y).mean(1));
    const at::Tensor log_variance = divergence.log_variance(y, uniform, uniform);
    const at::Tensor pooled = options.shared ? log_mean_exp(log_variance).view({1}) : log_variance;
    // If g bends more than once within a step, the particles do not determine the step well.
    const at::Tensor longest = 1 / pool(divergence.slope(y).mean(1));
    const at::Tensor theta = at::minimum((std::log(kLength) - 0.5 * pooled).exp(), longest);
    if (!(arrived | ((theta > 0) & theta.isfinite() & mean.isfinite())).all().item<bool>())
      fail(ScheduleError::Reason::kStalled, "stands still",
           "a `path` whose divergence is finite there, or more `pilot_chains`");
    const auto of_moving = [&](const at::Tensor& x) { return at::where(arrived, 0.0, x); };
    path->descend(at::stack({of_moving(log_ratio), of_moving(mean), of_moving(theta)}));

    const at::Tensor step_size = step_sizes.at(steps).to(like.device()).expand_as(like);
    const Moved moved = transition.step(problem, *path, particles, half, step_size, rng);
    cost += transition.evaluations_per_step() * once;
    particles = moved.particles;
    kappa = (particles.log_gamma - particles.log_q0).cpu();
    step_sizes.observe(steps, moved.accept_prob.mean(-1));
  }
}

}  // namespace

bool needs_pilot(const Path& path, const ScheduleRule& rule, const PilotOptions& options) {
  return path.needs_learning() || rule.is_adaptive() || !options.step_size;
}

PilotRun run_pilot(const Problem& problem, const Path& path, const ScheduleRule& rule,
                   const Transition& transition, const PilotOptions& options, at::Generator& rng) {
  if (path.needs_learning()) {
    Cost cost;
    try {
      const auto learned = learn_path(problem, path, transition, options, rng, cost);
      PilotRun pilot = run_pilot(problem, *learned, rule, transition, options, rng);
      pilot.plan.path = learned;
      pilot.run.cost += cost;
      return pilot;
    } catch (ScheduleError& error) {
      error.spent += cost;
      throw;
    }
  }
  const AnnealOptions anneal_options{options.num_particles, options.max_steps, options.shared,
                                     options.resampling, /*record=*/true};
  PilotStepSizes step_sizes(options, transition, problem.base().log_abs_det());
  PilotRun pilot{.run = anneal(problem, path, rule, transition, step_sizes, anneal_options, rng)};
  Plan plan{.betas = pilot.run.betas.cpu(),
            .step_sizes = (options.step_size ? pilot.run.step_sizes : step_sizes.tuned()).cpu(),
            .num_particles = options.num_particles,
            .divergence = pilot.run.divergence.cpu(),
            .path = nullptr,
            .accept_prob = pilot.run.accept_prob.cpu(),
            .ess = pilot.run.ess.cpu()};
  if (options.shared) {
    for (at::Tensor* seen : {&plan.divergence, &plan.accept_prob, &plan.ess})
      *seen = seen->mean(1, /*keepdim=*/true);
    plan.betas = plan.betas.slice(1, 0, 1).contiguous();
    plan.step_sizes = plan.step_sizes.slice(1, 0, 1).contiguous();
  }
  pilot.plan = options.interpolate > 0 ? interpolate(plan, options.interpolate) : plan;
  return pilot;
}

RoughNormalizer rough_log_normalizer(const Problem& problem, const Transition& transition,
                                     int64_t steps, const PilotOptions& options,
                                     at::Generator& rng) {
  const auto path = PathRegistry::instance().make("path", "geometric");
  const FixedSchedule equal_steps(at::linspace(0, 1, steps + 1, at::kDouble).unsqueeze(1));
  PilotOptions tuned = options;
  tuned.step_size.reset();
  tuned.interpolate = 0;
  const PilotRun pilot = run_pilot(problem, *path, equal_steps, transition, tuned, rng);
  const AnnealResult run =
      anneal(problem, *path, pilot.plan, transition, options.num_particles, rng);
  return {log_mean_exp(run.log_w), pilot.run.cost + run.cost};
}

}  // namespace crais
