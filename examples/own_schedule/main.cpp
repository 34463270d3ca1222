// A schedule and a path of your own, under names of their own, beside those of the library.
#include <crais/crais.h>

#include <cmath>
#include <cstdio>

namespace {

// Slow at the start: beta = (t / T)^2.
const crais::Enrol<crais::ScheduleRegistry> kQuadratic(
    "quadratic", "beta = (t/T)^2", "quadratic",
    [](crais::Spec&, const crais::ScheduleOptions& options) {
      return crais::make_heuristic(options.steps, [](double t) { return t * t; });
    });

/// The geometric path, walked at another pace: q0^(1 - b) gamma^b with b = beta^POWER.
class Paced : public crais::Path {
 public:
  explicit Paced(double power)
      : Path(crais::DivergenceRegistry::instance().make("divergence", "alpha:0")), power_(power) {}
  crais::PathPoint at(const at::Tensor& beta, const at::Tensor& log_q0,
                      const at::Tensor& log_gamma) const override {
    const at::Tensor b = beta.pow(power_).expand_as(log_gamma);
    // Exact at both ends, whatever the other end is: never 0 * (-inf).
    const at::Tensor from = at::where(b < 1, (1 - b) * log_q0, at::zeros_like(log_q0));
    const at::Tensor to = at::where(b > 0, b * log_gamma, at::zeros_like(log_gamma));
    return {from + to, 1 - b, b};
  }

 private:
  double power_;
};
const crais::Enrol<crais::PathRegistry> kPaced("paced[:POWER]", "geometric, at another pace",
                                               "paced:2", [](crais::Spec& spec) {
                                                 return std::make_unique<Paced>(
                                                     spec.number("power", 0.1, 10, 2));
                                               });

}  // namespace

int main() {
  const crais::FunctionTarget target(
      {.dim = 8}, [](const at::Tensor& z) { return -0.5 * ((z - 1) / 0.3).square().sum(-1); });
  const double truth = 8 * std::log(std::sqrt(2 * M_PI) * 0.3);
  int failures = 0;
  for (const auto& [schedule, path] :
       {std::pair{"linear", "geometric"}, {"quadratic", "geometric"}, {"linear", "paced:2"}}) {
    const crais::Result r = crais::estimate_log_normalizer(target, {.base = "prior",
                                                                    .chains = 1024,
                                                                    .seed = 1,
                                                                    .schedule = schedule,
                                                                    .steps = 128,
                                                                    .path = path});
    const double off = std::abs(r.value.item<double>() - truth);
    std::printf("%-9s  %-9s  within 0.2 nats: %s\n", schedule, path, off < 0.2 ? "yes" : "no");
    failures += off < 0.2 ? 0 : 1;
  }
  return failures;
}
