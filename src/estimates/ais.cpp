// Annealed importance sampling or sequential Monte Carlo, under a frozen plan.
#include "estimates/method.h"
#include "samplers/blocks.h"

namespace crais {
namespace {

class Ais : public Method {
 public:
  explicit Ais(const AnnealingParts& parts) : parts_(parts) {}

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override {
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
  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrolAis(
    "ais", {"ais", "annealed importance sampling (SMC with `resampling`)", "ais",
            [](Spec&, const AnnealingParts& parts) { return std::make_unique<Ais>(parts); }});

}  // namespace
}  // namespace crais
