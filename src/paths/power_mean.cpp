// gamma_beta = ((1-beta) q0^alpha + beta gamma^alpha)^(1/alpha)
//                                        [Masrani et al. 2021; the CR-AIS paper's optimal path]
#include <cmath>

#include "core/log_math.h"
#include "core/path.h"

namespace crais {
namespace {

class PowerMean : public Path {
 public:
  explicit PowerMean(std::shared_ptr<const Divergence> divergence)
      : Path(std::move(divergence)), alpha_(*this->divergence().order()) {}

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    const at::Tensor a = at::log1p(-beta) + alpha_ * log_q0;
    const at::Tensor b = beta.log() + alpha_ * log_gamma;
    // At an end the other density has weight 0: a and b may be inf - inf there.
    const at::Tensor at_start = beta == 0, at_end = beta == 1;
    const at::Tensor between = at::logaddexp(a, b) / alpha_;
    const at::Tensor log_density =
        at::where(at_start, log_q0, at::where(at_end, log_gamma, between));
    const at::Tensor w = at::where(at_start, at::zeros_like(a),
                                   at::where(at_end, at::ones_like(a), at::sigmoid(b - a)));
    return {log_density, 1 - w, w};
  }

  /// V = Var[u^alpha] r^alpha / alpha^2: steepest descent runs at r^-alpha times the pace of the
  /// clock -log(1 - beta).
  ///
  /// Particles far from the target overlap with none of its mass. Their estimate of r is
  /// exp(-thousands), which would make V vanish and end a schedule at once. But r is the mass of
  /// the target divided by that of a power mean of two normalised densities (problems are centred),
  /// and that ratio is bounded from below.
  at::Tensor log_rate(const at::Tensor& kappa, const at::Tensor& variance_weights,
                      const at::Tensor& ratio_weights) const override {
    const at::Tensor log_r = at::logsumexp(ratio_weights + kappa, -1);
    return log_variance_of_exp(alpha_ * kappa, variance_weights) - 2 * alpha_ * log_r +
           alpha_ * log_r.clamp_min(least_log_ratio()) - 2.0 * std::log(std::abs(alpha_));
  }

 private:
  /// The lower bound of log r: log of 1 / max Z_q, Z_q = int ((1-t) q0^alpha + t
  /// pi^alpha)^(1/alpha). Z_q is at most 1 for alpha <= 1. For larger alpha it is largest without
  /// overlap: max_t (1-t)^(1/alpha) + t^(1/alpha).
  double least_log_ratio() const { return alpha_ <= 1 ? 0.0 : (1 / alpha_ - 1) * std::log(2.0); }

  double alpha_;
};

const Enrol<PathRegistry> kEnrolPowerMean(
    "power:ALPHA", "the power mean of order ALPHA (0 geometric, 1 mixture)", "power:0.5",
    [](Spec& spec) -> std::unique_ptr<Path> {
      spec.number("alpha", -100, 100);  // an error names this path
      const std::string alpha = "alpha" + spec.text().substr(spec.name().size());
      auto divergence = DivergenceRegistry::instance().make("divergence", alpha);
      if (divergence->order() == 0) return PathRegistry::instance().make("path", "geometric");
      return std::make_unique<PowerMean>(std::move(divergence));
    });

}  // namespace
}  // namespace crais
