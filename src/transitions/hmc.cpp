// Hamiltonian Monte Carlo, with a full or a partial refreshment of the momentum.
//                                              [Duane et al. 1987; Horowitz 1991; Neal 2011, 5.5.3]
#include <cmath>
#include <memory>

#include "core/transition.h"

namespace crais {
namespace {

/// The momentum after refreshment is rho p + sqrt(1 - rho^2) xi; rho = 0 draws it afresh.
/// A rejection turns the (kept) momentum round, which is what leaves (e, p) invariant for rho > 0.
class Hmc : public Transition {
 public:
  Hmc(double persistence, int64_t num_leapfrog)
      : persistence_(persistence), num_leapfrog_(num_leapfrog) {}

  Moved step(const Problem& problem, const Path& path, const Particles& particles,
             const at::Tensor& beta, const at::Tensor& step_size,
             at::Generator& rng) const override {
    const at::Tensor b = beta.unsqueeze(1);
    const at::Tensor half_kick = (0.5 * step_size).to(particles.e.scalar_type()).view({-1, 1, 1});
    const at::Tensor drift = 2 * half_kick;
    const at::Tensor start = refreshed(particles, rng);

    Annealed now = annealed(path, b, particles);
    const at::Tensor energy = kinetic(start) - now.log_density;
    at::Tensor p = start;
    Particles proposal = particles;
    for (int64_t i = 0; i < num_leapfrog_; ++i) {
      p = at::addcmul(p, half_kick, now.grad);
      proposal = problem.evaluate(at::addcmul(proposal.e, drift, p));
      now = annealed(path, b, proposal);
      p.addcmul_(half_kick, now.grad);
    }

    // What is not finite in density or gradient has reached the energy, through p.
    const at::Tensor log_ratio = energy - (kinetic(p) - now.log_density);
    const at::Tensor finite = log_ratio.isfinite();
    const at::Tensor accept_prob =
        at::where(finite, log_ratio.clamp_max(0.0).exp(), at::zeros_like(log_ratio));
    const at::Tensor accepted = at::empty_like(accept_prob).uniform_(0, 1, rng) < accept_prob;
    Particles next = where(accepted, proposal, particles);
    if (persistence_ > 0) next.momentum = choose(accepted, p, -start);
    return {next, accept_prob, (~finite).sum().item<int64_t>()};
  }

  int64_t evaluations_per_step() const override { return num_leapfrog_; }
  double target_acceptance() const override { return 0.7; }

 private:
  struct Annealed {
    at::Tensor log_density;  // [P,K] float64
    at::Tensor grad;         // [P,K,D]
  };

  static Annealed annealed(const Path& path, const at::Tensor& beta, const Particles& particles) {
    const PathPoint point = path.at(beta, particles.log_q0, particles.log_gamma);
    const auto weight = [&](const at::Tensor& w) {
      return w.to(particles.e.scalar_type()).unsqueeze(-1);
    };
    at::Tensor grad = weight(point.d_log_gamma) * particles.grad_log_gamma;
    grad.addcmul_(weight(point.d_log_q0), particles.e, -1);  // grad log q0 = -e
    return {point.log_density, grad};
  }

  static at::Tensor kinetic(const at::Tensor& p) {
    return 0.5 * p.square().sum(-1).to(at::kDouble);
  }

  at::Tensor refreshed(const Particles& particles, at::Generator& rng) const {
    at::Tensor fresh = at::empty_like(particles.e).normal_(0, 1, rng);
    if (persistence_ == 0 || !particles.momentum.defined()) return fresh;
    return persistence_ * particles.momentum + std::sqrt(1 - persistence_ * persistence_) * fresh;
  }

  double persistence_;
  int64_t num_leapfrog_;
};

const Enrol<TransitionRegistry> kEnrolHmc(
    "hmc", {"hmc", "Hamiltonian Monte Carlo, a fresh momentum each move", "hmc",
            [](Spec&, const TransitionOptions& options) {
              return std::make_unique<Hmc>(0.0, options.num_leapfrog);
            }});

const Enrol<TransitionRegistry> kEnrolGhmc(
    "ghmc", {"ghmc:RHO", "Hamiltonian Monte Carlo whose momentum persists with weight RHO",
             "ghmc:0.9", [](Spec& spec, const TransitionOptions& options) {
               return std::make_unique<Hmc>(spec.number("rho", 0.0, 0.9999), options.num_leapfrog);
             }});

}  // namespace
}  // namespace crais
