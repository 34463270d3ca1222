#include "samplers/path_pilot.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "core/log_math.h"
#include "samplers/pilot_step_sizes.h"
#include "util/interrupt.h"

namespace crais {
namespace {

/// The latest knot of a descent, as a path that ignores beta.
class LastKnot : public Path {
 public:
  LastKnot(const DescentPath& path, const Descent& descent)
      : Path(path.shared_divergence()), descent_(descent) {}

  PathPoint at(const at::Tensor& /*beta*/, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    const auto [h, w] = descent_.at((log_gamma - log_q0).cpu());
    const at::Tensor slope = w.to(log_q0.device());
    return {log_q0 + h.to(log_q0.device()), 1 - slope, slope};
  }

 private:
  const Descent& descent_;
};

/// A descent whose constants come from its particles, all [C].
class Stepper {
 public:
  /// kappa [P,K] belongs to the base's particles.
  Stepper(const DescentPath& path, bool shared, const at::Tensor& kappa)
      : path_(path),
        shared_(shared),
        range_(range_of(kappa, shared)),
        descent_(path.shared_divergence(), range_) {}

  /// Takes a step from particles at kappa [P,K]. Returns false if they have arrived.
  bool step(const at::Tensor& kappa) {
    constexpr double kArrived = 0.9;  // overlap with the target, as the ESS of e^v
    const Divergence& divergence = path_.divergence();
    const at::Tensor v = kappa - descent_.at(kappa).h, overlap = pool(ess(v));
    const at::Tensor arrived = (overlap >= kArrived) & !step_.empty();
    if (arrived.all().item<bool>()) return false;
    const auto num_steps = static_cast<int64_t>(step_.size());
    const auto fail = [&](ScheduleError::Reason reason, const char* what, const char* remedy) {
      throw ScheduleError(reason, 0, num_steps,
                          c10::str("the path's pilot ", what, " after ", num_steps, " steps (",
                                   path_.name(), "): the particles' overlap with the target is ",
                                   overlap.min().item<double>(), "; use ", remedy));
    };
    if (num_steps >= path_.options().max_knots)
      fail(ScheduleError::Reason::kUnfinished, "has not arrived",
           "a base nearer to it, another `path`, or more of its knots");
    const at::Tensor log_ratio = pool(log_mean_exp(v));
    const at::Tensor y = v - log_ratio.unsqueeze(1), uniform = log_normalise(at::zeros_like(y));
    const at::Tensor mean = pool(divergence.g(y).mean(1));
    const at::Tensor log_variance = divergence.log_variance(y, uniform, uniform);
    const at::Tensor pooled = shared_ ? log_mean_exp(log_variance).view({1}) : log_variance;
    // If g bends more than once within a step, the particles do not determine the step well.
    const at::Tensor longest = 1 / pool(divergence.slope(y).mean(1));
    const at::Tensor theta =
        at::minimum((std::log(path_.options().length) - 0.5 * pooled).exp(), longest);
    if (!(arrived | ((theta > 0) & theta.isfinite() & mean.isfinite())).all().item<bool>())
      fail(ScheduleError::Reason::kStalled, "stands still",
           "a `path` whose divergence is finite there, or more `pilot_chains`");
    const auto of_moving = [&](const at::Tensor& x) { return at::where(arrived, 0.0, x); };
    log_ratio_.push_back(of_moving(log_ratio));
    mean_.push_back(of_moving(mean));
    step_.push_back(of_moving(theta));
    descent_.advance(log_ratio_.back(), mean_.back(), step_.back());
    return true;
  }

  const Descent& descent() const { return descent_; }
  std::shared_ptr<const DescentPath> path() const {
    return path_.with({range_, at::stack(log_ratio_), at::stack(mean_), at::stack(step_)},
                      descent_);
  }

 private:
  /// A range that leaves room for later particles: their present range, extended by its length on
  /// both sides.
  static at::Tensor range_of(const at::Tensor& kappa, bool shared) {
    const at::Tensor all = shared ? kappa.reshape({1, -1}) : kappa;
    const at::Tensor low = std::get<0>(all.min(1)), high = std::get<0>(all.max(1));
    const at::Tensor room = (high - low) + at::maximum(low.abs(), high.abs()) + 100;
    return at::stack({low - room, high + room});
  }

  at::Tensor pool(const at::Tensor& statistic) const {  // [P] -> [C]
    return shared_ ? statistic.mean().view({1}) : statistic;
  }

  const DescentPath& path_;
  bool shared_;
  at::Tensor range_;
  Descent descent_;
  std::vector<at::Tensor> log_ratio_, mean_, step_;
};

}  // namespace

LearnedPath learn_path(const Problem& problem, const Path& path, const Transition& transition,
                       const PilotOptions& options, at::Generator& rng) {
  const c10::NoGradGuard no_grad;
  const auto* descent = dynamic_cast<const DescentPath*>(&path);
  TORCH_CHECK(descent, "learn_path: the path has nothing to learn");
  const at::Tensor like = problem.base().log_abs_det();
  PilotStepSizes step_sizes(options, transition, like);

  Particles particles = problem.start(options.num_particles, rng);
  const auto kappa = [&] { return (particles.log_gamma - particles.log_q0).cpu(); };
  const auto cost = [&](int64_t steps) {
    return (1 + steps * transition.evaluations_per_step()) * problem.cost_of(options.num_particles);
  };
  Stepper stepper(*descent, options.shared, kappa());
  const LastKnot last_knot(*descent, stepper.descent());
  int64_t moves = 0;
  try {
    for (; stepper.step(kappa()); ++moves) {
      stop_if_interrupted();
      const at::Tensor step_size = step_sizes.at(moves).to(like.device()).expand_as(like);
      const Moved moved =
          transition.step(problem, last_knot, particles, at::full_like(like, 0.5), step_size, rng);
      particles = moved.particles;
      step_sizes.observe(moves, moved.accept_prob.mean(-1));
    }
  } catch (ScheduleError& error) {
    error.spent += cost(moves);
    throw;
  }
  return {stepper.path(), cost(moves)};
}

}  // namespace crais
