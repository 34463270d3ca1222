// Annealed importance sampling or sequential Monte Carlo, under a frozen plan. A plan without moves
// makes it plain importance sampling.
#include "estimates/method.h"
#include "samplers/blocks.h"
#include "samplers/importance.h"

namespace crais {
namespace {

class Ais : public Method {
 public:
  explicit Ais(const AnnealingParts& parts) : parts_(parts) {}

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override {
    if (!plan.has_moves()) return without_moves(problem, plan, rng);
    const AnnealResult run =
        anneal_in_blocks(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng,
                         parts_.resampling.get(), parts_.keep_particles);
    MethodResult result{log_normalizer(run.log_w, run.genealogy),
                        {},
                        run.accept_prob.mean(0),
                        run.num_nonfinite,
                        run.cost};
    if (has_independent_chains()) result.log_w = run.log_w;
    if (parts_.keep_particles)
      result.particles = {problem.base().to_z(run.particles.e), run.log_w,
                          run.genealogy.num_resamplings};
    return result;
  }
  bool has_independent_chains() const override { return !parts_.resampling; }
  bool has_particles() const override { return true; }
  int64_t num_anneals() const override { return 1; }

 private:
  /// Particles of the base with their weights; nothing is resampled, because nothing would move the
  /// copies apart. Cost: 1 density a particle.
  MethodResult without_moves(const Problem& problem, const Plan& plan, at::Generator& rng) const {
    LogWeights drawn =
        importance_log_weights(problem, plan.num_particles, rng, parts_.keep_particles);
    drawn.log_w = checked_starts(drawn.log_w, problem.target());
    const at::Tensor accepted = at::ones({problem.num_problems()}, drawn.log_w.options());
    MethodResult result{log_normalizer(drawn.log_w), {}, accepted, 0, drawn.cost};
    if (parts_.keep_particles)
      result.particles = {problem.base().to_z(drawn.e), drawn.log_w, at::zeros_like(accepted)};
    result.log_w = std::move(drawn.log_w);
    return result;
  }

  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrolAis("ais", "annealed importance sampling (SMC with `resampling`)",
                                      "ais", factory_of<Ais>);

}  // namespace
}  // namespace crais
