// The mean and covariance of a pilot's particles: a base for targets without structure, and for
// posteriors that are far from normal near their mode.
#include <c10/core/GradMode.h>

#include <cmath>
#include <memory>

#include "bases/base.h"
#include "core/transition.h"
#include "samplers/plan.h"

namespace crais {
namespace {

/// The covariance of K draws x [P,K,D]. Its off-diagonal is shrunk by the factor that minimises the
/// expected squared error of the correlations.                     [Schaefer & Strimmer 2005]
at::Tensor shrunk_covariance(const at::Tensor& x) {
  const auto k = static_cast<double>(x.size(1));
  const at::Tensor centred = x - x.mean(1, /*keepdim=*/true);
  const at::Tensor sd = (centred.square().sum(1, true) / (k - 1)).sqrt().clamp_min(1e-30);
  const at::Tensor u = centred / sd;
  const at::Tensor correlation = at::matmul(u.transpose(1, 2), u) / (k - 1);
  // Var[r_ij] = K / (K-1)^3 sum_k (u_ki u_kj - mean)^2. The sum over k is the sum of squares minus
  // K times the square of the mean.
  const at::Tensor squares = at::matmul(u.square().transpose(1, 2), u.square());
  const at::Tensor variance =
      k / std::pow(k - 1, 3) * (squares - correlation.square() * (k - 1) * (k - 1) / k);
  const at::Tensor off = 1 - at::eye(x.size(2), x.options());
  const at::Tensor intensity =
      ((variance * off).sum({1, 2}) / (correlation.square() * off).sum({1, 2}).clamp_min(1e-30))
          .clamp(0.0, 1.0)
          .view({-1, 1, 1});
  const at::Tensor shrunk = correlation * (1 - intensity * off);
  return sd.transpose(1, 2) * shrunk * sd;
}

class Pilot : public BaseRule {
 public:
  Pilot(int64_t num_particles, int64_t steps, int64_t rounds, double widening)
      : num_particles_(num_particles), steps_(steps), rounds_(rounds), widening_(widening) {}

  Base build(const Target& target, at::Generator& rng) const override {
    const c10::NoGradGuard no_grad;
    const auto path = PathRegistry::instance().make("path", "geometric");
    const auto transition = TransitionRegistry::instance().make("kernel", "ghmc:0.8", {});
    const auto rule =
        ScheduleRegistry::instance().make("schedule", "linear", ScheduleOptions{steps_});
    const PilotOptions options{.num_particles = num_particles_};
    Base base(first_guess(target));
    for (int64_t round = 0; round < rounds_; ++round) {
      const Problem problem(target.shared(), base.map);
      const PilotRun pilot = run_pilot(problem, *path, *rule, *transition, options, rng);
      base = refit(base, pilot.run.particles.e, pilot.run.cost);
    }
    base.map = base.map.widened(widening_);
    return base;
  }

 private:
  /// The base with the moments of particles e [P,K,D].
  Base refit(const Base& base, const at::Tensor& e, const Cost& cost) const {
    const at::Tensor wide = e.to(at::kDouble);
    const auto [root, info] = at::linalg_cholesky_ex(shrunk_covariance(wide));
    const at::Tensor failed = (info > 0) | ~root.isfinite().flatten(1).all(-1);
    const at::Tensor matrix = base.map.matrix();
    const at::Tensor loc = base.map.to_z(wide.mean(1, true).to(e.scalar_type())).squeeze(1);
    const at::Tensor fitted = at::matmul(matrix, root.to(e.scalar_type())).tril();
    return {chosen(~failed, loc, fitted, base.map), base.fell_back | failed, base.cost + cost};
  }

  int64_t num_particles_, steps_, rounds_;
  double widening_;
};

const Enrol<BaseRegistry> kEnrolPilotBase(
    "pilot[:K]",
    "mean and shrunk covariance of K = 256 pilot chains from the encoder or the prior "
    "(steps=64, rounds=4, widening=1)",
    "pilot:64,steps=16", [](Spec& spec, const BaseOptions&) {
      const int64_t particles = spec.integer("particles", 4, 1'000'000, 256);
      const int64_t steps = spec.integer("steps", 1, 100'000, 64);
      const int64_t rounds = spec.integer("rounds", 1, 100, 4);
      return std::make_unique<Pilot>(particles, steps, rounds,
                                     spec.number("widening", 0.1, 10.0, 1.0));
    });

}  // namespace
}  // namespace crais
