// Bidirectional Monte Carlo: forward chains bound log Z from below, reverse chains from exact draws
// bound it from above.                                  [Grosse, Ghahramani & Adams 2015]
// Where a target makes no exact draws, coupled chains make draws and bound how far they are off.
#include "estimates/method.h"
#include "samplers/blocks.h"
#include "samplers/coupled.h"
#include "samplers/resampling.h"
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
    const bool is_exact = has_exact_draws(problem.target());
    const AnnealResult forward =
        anneal_in_blocks(problem, *parts_.path, plan, *parts_.transition, plan.num_particles, rng,
                         /*resampling=*/nullptr, /*keep_particles=*/!is_exact);
    const CoupledDraws draws =
        is_exact ? CoupledDraws{} : coupled_draws_of(problem, plan, forward, rng);
    at::Tensor works;
    const AnnealResult reverse =
        problem.partition()
            ? reverse_of_parts(problem, plan, draws.z, forward.log_w, works, rng)
            : anneal_reverse_in_blocks(problem, *parts_.path, plan, *parts_.transition,
                                       plan.num_particles, rng, draws.z);
    if (!works.defined()) works = at::stack({forward.log_w, reverse.log_w}, 1);
    MethodResult result{log_normalizer(forward.log_w), reverse_log_normalizer(reverse.log_w),
                        0.5 * (forward.accept_prob.mean(0) + reverse.accept_prob.mean(0)),
                        forward.num_nonfinite + reverse.num_nonfinite,
                        forward.cost + reverse.cost + draws.cost};
    result.log_w = forward.log_w;
    result.reverse_log_w = reverse.log_w;
    result.distance = draws.distance;
    result.works = works;
    return result;
  }
  bool has_independent_chains() const override { return true; }
  int64_t num_anneals() const override { return 2; }
  double anneals_of(const Target& target) const override {
    return has_exact_draws(target) ? 2 : 2 + kLag + kMeeting;
  }
  bool has_upper() const override { return true; }

 private:
  static constexpr double kBaseShare = 0.4;  // of moves that propose draws of the base
  // In anneals: what a draw costs, and from there a pair of chains until it meets.
  static constexpr double kLag = 1.2, kMeeting = 0.05;

  /// Draws of the user's problems. Both chains of a pair start from forward particles, drawn by
  /// weight and independently of each other: given these particles, both starts have one law. It is
  /// nearer to the target than the base is.
  CoupledDraws coupled_draws_of(const Problem& problem, const Plan& plan,
                                const AnnealResult& forward, at::Generator& rng) const {
    WeightedParticles cloud{problem.base().to_z(forward.particles.e), forward.log_w, {}};
    at::Tensor row = at::arange(problem.num_problems(), forward.log_w.options().dtype(at::kLong));
    const Target* whole = &problem.target();
    if (const auto& partition = problem.partition()) {
      cloud = side_by_side(cloud, *partition);
      row = partition->counts().cumsum(0) - partition->counts();  // of the main parts
      whole = &dynamic_cast<const PartitionedTarget&>(*whole).whole();
    }
    const Problem target(whole->shared(), problem.base().select(row));
    const auto multinomial = ResamplingRegistry::instance().make("resampling", "multinomial");
    const auto start = [&] {
      const at::Tensor index =
          multinomial->ancestors(cloud.log_w, rng).slice(1, 0, plan.num_particles).unsqueeze(2);
      const at::Tensor z = cloud.z.gather(1, index.expand({-1, -1, target.dim()}));
      return target.base().to_e(z);
    };
    const at::Tensor first = start(), second = start();
    const at::Tensor steps = plan.step_sizes[-1].to(row.device()).expand({problem.num_problems()});
    const auto lag = static_cast<int64_t>(kLag * static_cast<double>(plan.num_steps()));
    return coupled_draws(target, steps.index_select(0, row), kBaseShare, first, second, lag, rng);
  }

  /// The reverse run of problems with parts. A draw z* of the problem gets a label j with
  /// probability r_j(z*). (j, z*) is then a draw of the pairs whose base is pi_j N_j(z).
  /// Every part runs back from every draw, and only the part of the label counts. The log-weights
  /// [P,K] belong to problems. `works` are those of MethodResult, by forward log-weights of parts.
  AnnealResult reverse_of_parts(const Problem& problem, const Plan& plan, const at::Tensor& draws,
                                const at::Tensor& forward, at::Tensor& works,
                                at::Generator& rng) const {
    const auto& target = dynamic_cast<const PartitionedTarget&>(problem.target());
    const Partition& partition = *problem.partition();
    const at::Tensor z = draws.defined() ? draws.index_select(0, partition.problem)
                                         : *target.exact_sample(plan.num_particles, rng);
    AnnealResult reverse = anneal_reverse(problem, *parts_.path, plan, *parts_.transition, z, rng);
    const at::Tensor counts = partition.counts(), first = counts.cumsum(0) - counts;  // [P]
    const at::Tensor logs = target.log_components(z).index_select(1, first);          // [J,P,K]
    const at::Tensor row = first.unsqueeze(1) + draw_labels(logs, rng);               // [P,K]
    const at::Tensor own = -reverse.log_w.gather(0, row);
    const at::Tensor others = forward.roll(1, 1);  // another chain of every other part
    works = at::stack(
        {partition.log_sum_exp(forward), -partition.log_sum_exp(others.scatter(0, row, own))}, 1);
    const at::Tensor weighed = reverse.log_w + partition.log_share.unsqueeze(1);
    reverse.log_w = weighed.gather(0, row);
    return reverse;
  }

  AnnealingParts parts_;
};

const Enrol<MethodRegistry> kEnrolBidirectional("bidirectional",
                                                "AIS both ways: a lower and an upper bound",
                                                "bidirectional", factory_of<Bidirectional>);

}  // namespace
}  // namespace crais
