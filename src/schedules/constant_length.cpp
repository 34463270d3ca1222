// Steps of equal thermodynamic length: the log-weight increment of each step has standard deviation
// DELTA.                                 [Gelman & Meng 1998; Kiwaki 2015; Syed et al. 2024]
//
// On the geometric path the increment is (beta' - beta) (log gamma - log q0), so steps are
// proportional to 1 / sd(log gamma - log q0). Of all schedules with equally many steps, this one
// has the least total variance if moves are perfect.
#include "core/log_math.h"
#include "schedules/adaptive.h"

namespace crais {
namespace {

class ConstantLength : public AdaptiveSchedule {
 public:
  ConstantLength(double delta, const ScheduleOptions& options)
      : AdaptiveSchedule(options), delta_(delta) {}

 protected:
  at::Tensor propose(const Progress& progress, const Path& path) const override {
    const auto log_density = [&](const at::Tensor& beta) {
      return annealed_log_density(path, beta, progress.particles);
    };
    const at::Tensor current = log_density(progress.beta);
    const at::Tensor weights = statistic_weights(progress).exp();
    const at::Tensor bound = at::full_like(progress.beta, -delta_ * delta_);
    return largest_step(progress.beta, options().max_step, bound, [&](const at::Tensor& beta) {
      const at::Tensor increment = log_density(beta) - current;
      const at::Tensor mean = (weights * increment).sum(-1, /*keepdim=*/true);
      return -progress.pool((weights * (increment - mean).square()).sum(-1));
    });
  }
  std::string name() const override { return "constant-length"; }

 private:
  double delta_;
};

const Enrol<ScheduleRegistry> kEnrolConstantLength(
    "constant-length:DELTA", "steps whose log-weight increments have standard deviation DELTA",
    "constant-length:0.25", [](Spec& spec, const ScheduleOptions& options) {
      return std::make_unique<ConstantLength>(spec.number("delta", 1e-9, 1e9), options);
    });

}  // namespace
}  // namespace crais
