// The Metropolis-adjusted Langevin algorithm (MALA).       [Besag 1994; Roberts & Tweedie 1996]
#include <memory>

#include "core/plain.h"
#include "core/rng.h"
#include "transitions/metropolis.h"

namespace crais {
namespace {

/// Proposes e' ~ N(e + eps^2/2 grad log gamma_beta(e), eps^2 I) and corrects for the asymmetry of
/// the proposal. In law this is hmc with one leapfrog step of length eps, so a step size means the
/// same in both. Cost: 1 evaluation.
class Mala : public Transition {
 public:
  Moved step(const Problem& problem, const Path& path, const Particles& particles,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    const at::Tensor eps = step_size.to(particles.e.scalar_type()).view({-1, 1, 1});
    const at::Tensor noise = fill_normal(at::empty_like(particles.e), rng);
    const PathPoint point = annealed(path, beta, particles);
    const Drifted to = kicked_and_drifted(noise, 0.5 * eps, point, particles);
    const Particles proposal = problem.evaluate(to.e);
    const PathPoint proposed = annealed(path, beta, proposal);
    // Minus the noise of the reverse proposal, eps xi' = e - e' - eps^2/2 grad(e').
    const at::Tensor back = kicked(to.p, 0.5 * eps, proposed, proposal);
    const at::Tensor log_ratio = elementwise(
        [](const auto& after, const auto& before, const auto& norm, const auto& norm_back) {
          return after - before + 0.5 * (norm - norm_back);
        },
        proposed.log_density, point.log_density, squared_norm(noise), squared_norm(back));
    return metropolis(particles, proposal, log_ratio, rng);
  }

  int64_t evaluations_per_step() const override { return 1; }
  double target_acceptance() const override { return 0.574; }  // optimal in high dimensions
};

const Enrol<TransitionRegistry> kEnrolMala(
    "mala", "Langevin proposal and Metropolis test; one step, whatever `num_leapfrog`", "mala",
    [](Spec&, const TransitionOptions&) { return std::make_unique<Mala>(); });

}  // namespace
}  // namespace crais
