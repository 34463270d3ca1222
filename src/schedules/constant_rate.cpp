// Equal decreases of the divergence D_f(target || particles): the CR-AIS paper's schedule.
//
// With 1 - beta as the paper's clock, dD/dlog(1-beta) = V, so each step takes
// log(1 - beta') = log(1 - beta) - delta / V. For the path of order alpha, kappa = log gamma - log
// gamma_beta, r = E[e^kappa] and u = e^kappa / r,
//   V = Var[u^alpha] r^alpha / alpha^2,   or Var[kappa] at alpha = 0.
// Moments are of the particles as they are, as if moves were perfect; `weighted` takes them under
// the importance weights, which is what the paper writes, `weighted_ratio` r alone, as its code
// does. Everything stays in logarithms: V neither over- nor underflows, whatever the dimension.
//
// Particles far from the target overlap with none of its mass, and find an r of exp(-thousands),
// which would make V vanish and the schedule end at once. But r is the target's mass over that of a
// power mean of two normalised densities (problems are centred), which is bounded from below.
#include <cmath>
#include <limits>
#include <sstream>

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
    const at::Tensor kappa = particles.log_gamma - annealed(path, beta, particles).log_density;
    const at::Tensor log_v = pooled_log(progress, log_rate(kappa, statistic_weights(progress),
                                                           ratio_weights(progress), path.order()));
    const at::Tensor finished = (log_v <= std::log(options().tolerance)) & (beta < 1);
    require_near(progress, kappa, log_v, finished);
    const at::Tensor step = (1 - beta) * -at::expm1(-at::exp(std::log(delta_) - log_v));
    return (beta + step).masked_fill(finished, std::numeric_limits<double>::infinity());
  }
  std::string name() const override { return "constant-rate"; }

 private:
  at::Tensor ratio_weights(const Progress& progress) const {
    return AdaptiveSchedule::statistic_weights(progress,
                                               options().weighted || options().weighted_ratio);
  }

  /// log V [P] of kappa [P,K], under normalised log-weights [P,K] for the variance and for r.
  static at::Tensor log_rate(const at::Tensor& kappa, const at::Tensor& log_weights,
                             const at::Tensor& ratio_log_weights, double alpha) {
    if (alpha == 0.0) {
      const at::Tensor w = log_weights.exp();
      const at::Tensor mean = (w * kappa).sum(-1, /*keepdim=*/true);
      return (w * (kappa - mean).square()).sum(-1).log();
    }
    const at::Tensor log_r = at::logsumexp(ratio_log_weights + kappa, -1);
    return log_variance_of_exp(alpha * kappa, log_weights) - 2 * alpha * log_r +
           alpha * log_r.clamp_min(least_log_ratio(alpha)) - 2.0 * std::log(std::abs(alpha));
  }

  /// log of 1 / max Z_q, where Z_q = int ((1-t) q0^alpha + t pi^alpha)^(1/alpha): at most 1 up to
  /// alpha = 1; beyond, largest without overlap, max_t (1-t)^(1/alpha) + t^(1/alpha).
  static double least_log_ratio(double alpha) {
    return alpha <= 1 ? 0.0 : (1 / alpha - 1) * std::log(2.0);
  }

  /// The mean over problems of V, not of log V: dJ/dlog(1-beta) adds up over problems.
  static at::Tensor pooled_log(const Progress& progress, const at::Tensor& log_v) {
    return progress.shared ? log_mean_exp(log_v).expand_as(log_v) : log_v;
  }

  /// V below the tolerance means "arrived" only if the particles can also be reweighted to the
  /// target; where they cannot, they have not seen it, and V is not its variance.
  void require_near(const Progress& progress, const at::Tensor& kappa, const at::Tensor& log_v,
                    const at::Tensor& finished) const {
    constexpr double kLeastOverlap = 0.5;
    const at::Tensor overlap = progress.pool(ess(kappa));
    const at::Tensor premature = finished & (overlap < kLeastOverlap);
    if (!premature.any().item<bool>()) return;
    const int64_t p = premature.nonzero()[0].item<int64_t>();
    std::ostringstream message;
    message << "schedule constant-rate would end at beta = " << progress.beta[p].item<double>()
            << " (problem " << p << ", step " << progress.index
            << "): its variance estimate is exp(" << log_v[p].item<double>()
            << "), below `tolerance` " << options().tolerance
            << ", yet the particles' overlap with the target is " << overlap[p].item<double>()
            << advice(progress, p);
    throw ScheduleError(ScheduleError::Reason::kNoOverlap, progress.beta[p].item<double>(),
                        progress.index, message.str());
  }

  /// What to do for problem p. The variance of few particles vanishes wherever they are.
  std::string advice(const Progress& progress, int64_t p) const {
    if (!options().weighted)
      return "; use a `path` of order nearer 0, more `pilot_chains`, or a smaller `tolerance`";
    const auto num_particles = static_cast<double>(progress.log_w.size(1));
    std::ostringstream words;
    words << "; the importance weights rest on "
          << num_particles * ess(progress.log_w)[p].item<double>() << " of " << num_particles
          << " particles: leave out `weighted`, or add `resampling`";
    return words.str();
  }

  double delta_;
};

const Enrol<ScheduleRegistry> kEnrolConstantRate(
    "constant-rate", {"constant-rate:DELTA",
                      "equal decreases DELTA (nats at alpha 0) of the divergence to the target",
                      "constant-rate:0.25", [](Spec& spec, const ScheduleOptions& options) {
                        return std::make_unique<ConstantRate>(spec.number("delta", 1e-12, 1e12),
                                                              options);
                      }});

}  // namespace
}  // namespace crais
