// Equal decreases of the divergence D_f(target || particles): the schedule of the CR-AIS paper.
//
// With the path's clock -log(1 - beta), dD/dlog(1 - beta) = V, so each step takes log(1 - beta') =
// log(1 - beta) - delta / V. The path defines V (`Path::log_rate`) and the clock (`Path::advance`).
// All quantities are logarithms: V neither overflows nor underflows in any dimension. V is computed
// from the unweighted particles, as if moves were perfect. `weighted` uses the importance weights
// for V, as in the paper; `weighted_ratio` uses them for the mass ratio alone, as in the paper's
// code.
#include <cmath>
#include <limits>

#include "core/log_math.h"
#include "schedules/adaptive.h"
#include "util/error.h"

namespace crais {
namespace {

class ConstantRate : public AdaptiveSchedule {
 public:
  ConstantRate(double delta, const ScheduleOptions& options)
      : AdaptiveSchedule(options), delta_(delta) {}

 protected:
  at::Tensor propose(const Progress& progress, const Path& path) const override {
    const Particles& particles = progress.particles;
    const at::Tensor& beta = progress.beta;
    const at::Tensor kappa = particles.log_gamma - annealed_log_density(path, beta, particles);
    const at::Tensor ratio_weights = AdaptiveSchedule::statistic_weights(
        progress, options().weighted || options().weighted_ratio);
    const at::Tensor log_v =
        pooled_log(progress, path.log_rate(kappa, statistic_weights(progress), ratio_weights));
    const at::Tensor finished = (log_v <= std::log(options().tolerance)) & (beta < 1);
    require_near(progress, kappa, log_v, finished);
    return path.advance(beta, std::log(delta_) - log_v)
        .masked_fill(finished, std::numeric_limits<double>::infinity());
  }
  std::string name() const override { return "constant-rate"; }

 private:
  /// log of the mean of V (not of log V) over problems: dJ/dlog(1-beta) adds up over problems.
  static at::Tensor pooled_log(const Progress& progress, const at::Tensor& log_v) {
    return progress.shared ? log_mean_exp(log_v).expand_as(log_v) : log_v;
  }

  /// V below the tolerance means "arrived" only if the particles can also be reweighted to the
  /// target. If they cannot, they have not reached the target, and V is not its variance.
  void require_near(const Progress& progress, const at::Tensor& kappa, const at::Tensor& log_v,
                    const at::Tensor& finished) const {
    constexpr double kLeastOverlap = 0.5;
    const at::Tensor overlap = progress.pool(ess(kappa));
    const at::Tensor premature = finished & (overlap < kLeastOverlap);
    if (!premature.any().item<bool>()) return;
    const int64_t p = premature.nonzero()[0].item<int64_t>();
    const auto reached = progress.beta[p].item<double>();
    throw ScheduleError(
        ScheduleError::Reason::kNoOverlap, reached, progress.index,
        c10::str("schedule constant-rate would end at beta = ", reached, " (problem ", p, ", step ",
                 progress.index, "): its variance estimate is exp(", log_v[p].item<double>(),
                 "), below `tolerance` ", options().tolerance,
                 ", yet the particles' overlap with the target is ", overlap[p].item<double>(),
                 advice(progress, p)));
  }

  /// The advice for problem p. The variance of few particles vanishes anywhere.
  std::string advice(const Progress& progress, int64_t p) const {
    if (!options().weighted)
      return "; use a `path` of order nearer 0, more `pilot_chains`, or a smaller `tolerance`";
    const auto num_particles = static_cast<double>(progress.log_w.size(1));
    return c10::str("; the importance weights rest on ",
                    num_particles * ess(progress.log_w)[p].item<double>(), " of ", num_particles,
                    " particles: leave out `weighted`, or add `resampling`");
  }

  double delta_;
};

const Enrol<ScheduleRegistry> kEnrolConstantRate(
    "constant-rate:DELTA",
    "equal decreases DELTA (nats at alpha 0) of the divergence to the target", "constant-rate:0.25",
    [](Spec& spec, const ScheduleOptions& options) {
      return std::make_unique<ConstantRate>(spec.number("delta", 1e-12, 1e12), options);
    });

}  // namespace
}  // namespace crais
