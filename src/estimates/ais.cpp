// Annealed importance sampling under a frozen plan.
#include "estimates/method.h"

namespace crais {
namespace {

class Ais : public Method {
 public:
  explicit Ais(const AnnealingParts& parts) : parts_(parts) {}

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override {
    const AnnealResult run =
        anneal(problem, parts_.path, plan, parts_.transition, parts_.num_particles, rng);
    return {log_normalizer(run.log_w), run.accept_prob.mean(0), run.num_nonfinite};
  }
  bool anneals() const override { return true; }

 private:
  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrol("ais", {"ais", "annealed importance sampling", "ais",
                                           [](Spec&, const AnnealingParts& parts) {
                                             return std::make_unique<Ais>(parts);
                                           }});

}  // namespace
}  // namespace crais
