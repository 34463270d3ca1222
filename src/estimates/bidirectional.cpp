// Bidirectional Monte Carlo: forward chains bound log Z from below, reverse chains from exact draws
// bound it from above.
//                                                       [Grosse, Ghahramani & Adams 2015]
#include "estimates/method.h"
#include "samplers/blocks.h"
#include "targets/partitioned.h"
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
    const AnnealResult reverse =
        problem.partition() ? reverse_of_parts(problem, plan, rng)
                            : anneal_reverse_in_blocks(problem, *parts_.path, plan,
                                                       *parts_.transition, plan.num_particles, rng);
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
  /// The reverse run of problems with parts. An exact draw z* of the problem gets a label j with
  /// probability r_j(z*). (j, z*) is then an exact draw of the pairs whose base is pi_j N_j(z).
  /// Every part runs back from every draw, and only the part of the label counts. The log-weights
  /// [P,K] belong to problems.
  AnnealResult reverse_of_parts(const Problem& problem, const Plan& plan,
                                at::Generator& rng) const {
    const auto& target = dynamic_cast<const PartitionedTarget&>(problem.target());
    const auto z = target.exact_sample(plan.num_particles, rng);
    if (!z) throw internal_error("parts of a target without exact draws run back");
    AnnealResult reverse = anneal_reverse(problem, *parts_.path, plan, *parts_.transition, *z, rng);
    const Partition& partition = *problem.partition();
    const at::Tensor counts = partition.counts(), first = counts.cumsum(0) - counts;  // [P]
    const at::Tensor logs = target.log_components(*z).index_select(1, first);         // [J,P,K]
    const at::Tensor row = first.unsqueeze(1) + draw_labels(logs, rng);               // [P,K]
    const at::Tensor weighed = reverse.log_w + partition.log_share.unsqueeze(1);
    reverse.log_w = weighed.gather(0, row);
    return reverse;
  }

  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrolBidirectional(
    "bidirectional", "AIS both ways from simulated data: a lower and an upper bound",
    "bidirectional", factory_of<Bidirectional>);

}  // namespace
}  // namespace crais
