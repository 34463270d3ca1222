// Hamiltonian Monte Carlo, with a full or a partial refreshment of the momentum.
//                                              [Duane et al. 1987; Horowitz 1991; Neal 2011, 5.5.3]
#include <cmath>
#include <memory>

#include "core/plain.h"
#include "core/rng.h"
#include "transitions/metropolis.h"

namespace crais {
namespace {

/// Hamiltonian Monte Carlo. Refreshment sets the momentum to rho p + sqrt(1 - rho^2) xi; rho = 0
/// draws a new momentum. A rejection reverses the kept momentum: this leaves (e, p) invariant for
/// rho > 0.
class Hmc : public Transition {
 public:
  Hmc(double persistence, int64_t num_leapfrog)
      : persistence_(persistence), num_leapfrog_(num_leapfrog) {}

  Moved step(const Problem& problem, const Path& path, const Particles& particles,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    at::Tensor start = refreshed(particles, rng);  // new memory
    const at::Tensor half_kick = (0.5 * step_size).to(particles.e.scalar_type()).view({-1, 1, 1});
    PathPoint now = annealed(path, beta, particles);
    const at::Tensor before = energy(start, now);
    at::Tensor p = start;
    Particles proposal = particles;
    for (int64_t i = 0; i < num_leapfrog_; ++i) {
      const Drifted to = kicked_and_drifted(p, half_kick, now, proposal);
      proposal = problem.evaluate(to.e);
      now = annealed(path, beta, proposal);
      p = kicked(to.p, half_kick, now, proposal);
    }

    const at::Tensor log_ratio = before - energy(p, now);
    if (persistence_ == 0) return metropolis(particles, proposal, log_ratio, rng);
    Particles turned = particles;
    turned.momentum = start.neg_();
    proposal.momentum = p;
    return metropolis(turned, proposal, log_ratio, rng);
  }

  int64_t evaluations_per_step() const override { return num_leapfrog_; }
  double target_acceptance() const override { return 0.7; }

 private:
  /// The energy of momenta p at particles whose path point is `point`, [P,K].
  static at::Tensor energy(const at::Tensor& p, const PathPoint& point) {
    return elementwise([](const auto& norm, const auto& density) { return 0.5 * norm - density; },
                       squared_norm(p), point.log_density);
  }

  at::Tensor refreshed(const Particles& particles, at::Generator& rng) const {
    at::Tensor fresh = fill_normal(at::empty_like(particles.e), rng);
    if (persistence_ == 0 || !particles.momentum.defined()) return fresh;
    return fresh.mul_(std::sqrt(1 - persistence_ * persistence_))
        .add_(particles.momentum, persistence_);
  }

  double persistence_;
  int64_t num_leapfrog_;
};

const Enrol<TransitionRegistry> kEnrolHmc("hmc",
                                          "Hamiltonian Monte Carlo, a fresh momentum each move",
                                          "hmc", [](Spec&, const TransitionOptions& options) {
                                            return std::make_unique<Hmc>(0.0, options.num_leapfrog);
                                          });

const Enrol<TransitionRegistry> kEnrolGhmc(
    "ghmc:RHO", "Hamiltonian Monte Carlo whose momentum persists with weight RHO", "ghmc:0.9",
    [](Spec& spec, const TransitionOptions& options) {
      return std::make_unique<Hmc>(spec.number("rho", 0.0, 0.9999), options.num_leapfrog);
    });

}  // namespace
}  // namespace crais
