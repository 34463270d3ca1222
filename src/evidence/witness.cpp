// Whether settled particles reach where chains have not been, and what another base estimates.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "core/rng.h"
#include "evaluation/estimator.h"
#include "evidence/evidence.h"
#include "evidence/rounds.h"
#include "samplers/settling.h"
#include "targets/partitioned.h"

namespace crais {
namespace {

/// The parts of the first replicate; all replicates have the same parts.
struct OneReplicate {
  std::shared_ptr<const PartitionedTarget> parts;
  AffineMap normals;  // [J]
};

OneReplicate first_of(const Problem& problem) {
  const at::TensorOptions index = problem.base().options().dtype(at::kLong);
  const at::Tensor first = at::zeros({1}, index);
  if (problem.partition()) {
    const Problem replicate = problem.select_whole(first);
    return {std::dynamic_pointer_cast<const PartitionedTarget>(replicate.shared_target()),
            replicate.base()};
  }
  const AffineMap normal = problem.base().select(first);
  const Partition whole{first, at::zeros({1}, index.dtype(at::kDouble)), 1};
  return {std::make_shared<PartitionedTarget>(*problem.target().select(first), normal, whole),
          normal};
}

/// At most `count` particles [N,D] with their log-weights [N], chosen at random.
std::pair<at::Tensor, at::Tensor> some_of(const WeightedParticles& particles, int64_t count,
                                          at::Generator& rng) {
  const at::Tensor z = particles.z.flatten(0, 1), log_w = particles.log_w.flatten();
  if (z.size(0) <= count) return {z, log_w};
  const at::Tensor chosen = fill_uniform(at::empty_like(log_w), rng).argsort().slice(0, 0, count);
  return {z.index_select(0, chosen), log_w.index_select(0, chosen)};
}

constexpr int64_t kEstimates = 4;

}  // namespace

bool needs_witness(bool has_moves, const Problem& problem) {
  return has_moves || problem.partition().has_value();
}

SettledShare settled_share(const EstimatorParts& parts, const Problem& problem, const Plan& plan,
                           const WeightedParticles& found, uint64_t stream, Cost& cost) {
  constexpr double kTop = 0.997;
  at::Generator rng = stream_of(parts, problem.target(), Purpose::kWitness, stream);
  const OneReplicate one = first_of(problem);
  const int64_t count = one.normals.num_problems();
  const at::Tensor rows = at::arange(count, one.normals.options().dtype(at::kLong));
  const at::Tensor last = plan.has_moves()
                              ? plan.step_sizes[-1].to(rows.device())
                              : at::full({1}, parts.pilot.initial_step_size, found.log_w.options());
  const at::Tensor steps = last.size(0) == 1 ? last.expand({count}) : last.index_select(0, rows);
  const auto [z, log_w] = some_of(found, kMostForward, rng);
  const int64_t witnesses = num_witnesses(problem.dim());
  const Settled settled = settle(*one.parts, one.normals, resampled(z, log_w, witnesses, rng),
                                 steps, *parts.transition, witness_sweeps(problem.dim()), rng);
  cost += settled.cost;
  // Where the base is too thin, in a neck or a tail, the target is large beside it.
  const auto density = one.parts->whole().slice(0, 1);
  const auto base =
      std::static_pointer_cast<const PartitionedTarget>(one.parts->select(rows[0].view(1)));
  const auto log_ratio = [&](const at::Tensor& points) {
    const at::Tensor at = points.unsqueeze(0);
    return (density->log_density(at).to(at::kDouble) - at::logsumexp(base->log_components(at), 0))
        .squeeze(0);
  };
  cost += Cost{z.size(0) + witnesses, 0};
  const auto [forward, order] = log_ratio(z).sort();
  const at::Tensor shares = at::softmax(log_w, 0).index_select(0, order);
  const at::Tensor below = shares.cumsum(0);
  const int64_t top = std::min((below < kTop).sum().item<int64_t>(), z.size(0) - 1);
  const at::Tensor above = log_ratio(settled.z) > forward[top];
  return {above.to(at::kDouble).mean().item<double>(), 1 - below[top].item<double>(),
          1 / (1 / static_cast<double>(witnesses) + shares.square().sum().item<double>())};
}

Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost) {
  EstimateOptions own{.chains = 32,
                      .seed = derive_seed(options.seed, Purpose::kWitness, kSharedStream),
                      .steps = 96,
                      .resampling = "systematic:0.5"};
  const auto replicates = target.select(at::zeros({kEstimates}, target.options().dtype(at::kLong)));
  const TunedEstimator tuned = Estimator(own, evidence_driver()).tune(*replicates);
  const ChunkResult result = tuned.estimate(0, *replicates);
  cost += tuned.state().fitting + tuned.state().tuning + result.tuning + result.runs.front().cost;
  const at::Tensor value = at::tensor(result.runs.front().log_normalizer, at::kDouble);
  const at::Tensor std_error = at::tensor(result.runs.front().std_error, at::kDouble);
  // The spread of four numbers is uncertain, so their own errors count too.
  const double spread = value.std().item<double>(),
               own_error = std_error.square().mean().sqrt().item<double>();
  const std::vector<int64_t>& flags = result.runs.front().flags;
  const auto flagged = std::count_if(flags.begin(), flags.end(), [](int64_t f) { return f != 0; });
  return {value.mean().item<double>(),
          1.5 * std::max(spread, own_error) / std::sqrt(double{kEstimates}),
          2 * flagged >= kEstimates};
}

}  // namespace crais
