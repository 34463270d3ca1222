// Forward chains bound log Z from below, reverse chains from exact draws bound it from above.
//                                                       [Grosse, Ghahramani & Adams 2015]
#include "estimates/method.h"
#include "samplers/blocks.h"
#include "util/error.h"

namespace crais {
namespace {

class Bidirectional : public Method {
 public:
  explicit Bidirectional(const AnnealingParts& parts) : parts_(parts) {
    if (parts.resampling)
      throw argument_error("the method bidirectional runs AIS both ways; leave out `resampling`");
  }

  MethodResult estimate(const Problem& problem, const Plan& plan,
                        at::Generator& rng) const override {
    const AnnealResult forward =
        anneal_in_blocks(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng);
    const AnnealResult reverse = anneal_reverse_in_blocks(
        problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng);
    MethodResult result{log_normalizer(forward.log_w), reverse_log_normalizer(reverse.log_w),
                        0.5 * (forward.accept_prob.mean(0) + reverse.accept_prob.mean(0)),
                        forward.num_nonfinite + reverse.num_nonfinite, forward.cost + reverse.cost};
    result.log_w = forward.log_w;
    result.reverse_log_w = reverse.log_w;
    return result;
  }
  bool has_independent_chains() const override { return true; }
  int64_t num_anneals() const override { return 2; }
  bool needs_exact_draws() const override { return true; }

 private:
  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrolBidirectional(
    "bidirectional",
    {"bidirectional", "AIS both ways from simulated data: a lower and an upper bound",
     "bidirectional",
     [](Spec&, const AnnealingParts& parts) { return std::make_unique<Bidirectional>(parts); }});

}  // namespace
}  // namespace crais
