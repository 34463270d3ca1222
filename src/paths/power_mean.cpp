// gamma_beta = ((1-beta) q0^alpha + beta gamma^alpha)^(1/alpha)
//                                        [Masrani et al. 2021; the CR-AIS paper's optimal path]
#include "paths/power_mean.h"

#include <cmath>

namespace crais {
namespace {

class PowerMean : public Path {
 public:
  explicit PowerMean(double alpha) : alpha_(alpha) {}

  PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
               const at::Tensor& log_gamma) const override {
    const at::Tensor a = at::log1p(-beta) + alpha_ * log_q0;
    const at::Tensor b = beta.log() + alpha_ * log_gamma;
    // At an end the other density has no say: a and b may be inf - inf there.
    const at::Tensor at_start = beta == 0, at_end = beta == 1;
    const at::Tensor between = at::logaddexp(a, b) / alpha_;
    const at::Tensor log_density =
        at::where(at_start, log_q0, at::where(at_end, log_gamma, between));
    const at::Tensor w = at::where(at_start, at::zeros_like(a),
                                   at::where(at_end, at::ones_like(a), at::sigmoid(b - a)));
    return {log_density, 1 - w, w};
  }
  double order() const override { return alpha_; }

 private:
  double alpha_;
};

const Enrol<PathRegistry> kEnrolPowerMean(
    "power", {"power:ALPHA", "the power mean of order ALPHA (0 geometric, 1 mixture)", "power:0.5",
              [](Spec& spec) { return make_power_mean_path(spec.number("alpha", -100, 100)); }});

}  // namespace

std::unique_ptr<Path> make_power_mean_path(double alpha) {
  if (std::abs(alpha) < 1e-6) return make_geometric_path();
  return std::make_unique<PowerMean>(alpha);
}

}  // namespace crais
