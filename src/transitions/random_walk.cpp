// Random-walk Metropolis: the kernel that needs no gradient.            [Metropolis et al. 1953]
#include <memory>

#include "core/rng.h"
#include "transitions/metropolis.h"

namespace crais {
namespace {

/// Proposes e' ~ N(e, eps^2 I). Cost: 1 evaluation, with a gradient that only fills the cache.
class RandomWalk : public Transition {
 public:
  Moved step(const Problem& problem, const Path& path, const Particles& particles,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    const at::Tensor eps = step_size.to(particles.e.scalar_type()).view({-1, 1, 1});
    const at::Tensor noise = fill_normal(at::empty_like(particles.e), rng);
    const Particles proposal = problem.evaluate(particles.e + eps * noise);
    const at::Tensor log_ratio =
        annealed_log_density(path, beta, proposal) - annealed_log_density(path, beta, particles);
    return metropolis(particles, proposal, log_ratio, rng);
  }

  int64_t evaluations_per_step() const override { return 1; }
  double target_acceptance() const override { return 0.234; }  // optimal in high dimensions
};

const Enrol<TransitionRegistry> kEnrolRandomWalk(
    "random-walk", "normal proposal and Metropolis test; one step, whatever `num_leapfrog`",
    "random-walk", [](Spec&, const TransitionOptions&) { return std::make_unique<RandomWalk>(); });

}  // namespace
}  // namespace crais
