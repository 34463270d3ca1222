// A target and a schedule of one's own, estimated with an installed crais.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

#include "core/rng.h"
#include "core/schedule.h"
#include "core/target.h"
#include "core/transition.h"
#include "estimates/estimate.h"
#include "samplers/plan.h"
#include "schedules/fixed.h"

namespace {

/// gamma(z) = exp(-z1^2 / 2 - (z2 - z1^2)^2 / (2 sd^2)). Bending the plane keeps areas, so
/// Z = 2 pi sd whatever the bend. The gradient is autograd's.
class Banana : public crais::Target {
 public:
  static constexpr double kSd = 0.5;

  int64_t num_problems() const override { return 1; }
  int64_t dim() const override { return 2; }
  at::Tensor log_density(const at::Tensor& z) const override {
    const at::Tensor z1 = z.select(-1, 0), z2 = z.select(-1, 1);
    return -0.5 * z1.square() - 0.5 * ((z2 - z1.square()) / kSd).square();
  }
};

// A schedule of our own, under a name of its own: slow at the start.
const crais::Enrol<crais::ScheduleRegistry> kQuadratic(
    "quadratic", {"quadratic", "beta = (t/T)^2", "quadratic",
                  [](crais::Spec&, const crais::ScheduleOptions& options) {
                    return crais::make_heuristic(options.steps, [](double t) { return t * t; });
                  }});

}  // namespace

int main() {
  const Banana banana;
  const auto float64 = at::TensorOptions(at::kDouble);
  const crais::AffineMap base(at::zeros({1, 2}, float64), at::full({1, 2}, 2.0, float64));
  const crais::Problem problem(banana, base);

  const auto path = crais::PathRegistry::instance().make("path", "geometric");
  const auto rule = crais::ScheduleRegistry::instance().make("schedule", "quadratic", {});
  const auto hmc = crais::TransitionRegistry::instance().make("kernel", "hmc", {});

  at::Generator pilot = crais::make_generator(crais::derive_seed(1, crais::Purpose::kPilot));
  at::Generator fresh = crais::make_generator(crais::derive_seed(1, crais::Purpose::kEstimate));
  const crais::Plan plan = crais::tune(problem, *path, *rule, *hmc, {}, pilot);
  const auto annealed = crais::anneal(problem, *path, plan, *hmc, 1024, fresh);
  const crais::Estimate estimate = crais::log_normalizer(annealed.log_w);

  const double value = estimate.value.item<double>();
  const double std_error = estimate.std_error.item<double>();
  const double truth = std::log(2 * M_PI * Banana::kSd);
  std::printf("log Z = %.4f +- %.4f; exactly %.4f\n", value, std_error, truth);
  return std::abs(value - truth) < 5 * std_error && std_error < 0.1 ? 0 : 1;
}
