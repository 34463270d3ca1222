#include "estimates/method.h"

#include <cmath>
#include <limits>

namespace crais {
namespace {

/// The estimate of a sum of independent estimates. Their variances, in units of the squared sum,
/// add up.
Estimate sum_of(const Estimate& parts, const Partition& partition) {
  const at::Tensor value = partition.log_sum_exp(parts.value);
  const at::Tensor shares = (parts.value - value.index_select(0, partition.problem)).exp();
  const at::Tensor variance = partition.sum((shares * parts.std_error).square());
  const at::Tensor counts = partition.counts().to(value.options());
  // The effective number of chains of a sum of weights, from the number of each part.
  const at::Tensor ess = 1 / (partition.sum(shares.square() / parts.ess) * counts);
  const at::Tensor k =
      at::where(shares > 0.05, parts.pareto_k, -std::numeric_limits<double>::infinity());
  const at::Tensor highest = partition.log_sum_exp(1e3 * k) / 1e3;  // NaN stays NaN
  return {value, variance.sqrt(), -0.5 * variance, ess, highest};
}

}  // namespace

WeightedParticles side_by_side(const WeightedParticles& parts, const Partition& partition) {
  const at::Tensor counts = partition.counts();
  const int64_t most = counts.max().item<int64_t>(), chains = parts.log_w.size(1);
  const at::Tensor place = at::arange(most, counts.options()).unsqueeze(0);
  const at::Tensor is_there = place < counts.unsqueeze(1);  // [P,J]
  const at::Tensor rows = at::where(is_there, (counts.cumsum(0) - counts).unsqueeze(1) + place, 0);
  const at::Tensor log_w =
      (parts.log_w.index_select(0, rows.flatten()).view({-1, most, chains}) +
       std::log(static_cast<double>(most)))
          .masked_fill(~is_there.unsqueeze(2), -std::numeric_limits<double>::infinity());
  const at::Tensor z = parts.z.index_select(0, rows.flatten());
  return {z.view({-1, most * chains, z.size(2)}), log_w.flatten(1),
          parts.num_resamplings.defined() ? partition.mean(parts.num_resamplings) : at::Tensor()};
}

MethodResult merged(MethodResult parts, const Partition& partition) {
  const bool has_parts = parts.log_w.defined() && parts.log_w.size(0) == partition.num_parts();
  if (has_parts) parts.log_w = partition.log_sum_exp(parts.log_w);
  parts.estimate = has_parts ? log_normalizer(parts.log_w) : sum_of(parts.estimate, partition);
  if (parts.accept_prob.defined()) parts.accept_prob = partition.mean(parts.accept_prob);
  if (parts.particles) parts.particles = side_by_side(*parts.particles, partition);
  return parts;
}

MethodResult joined(const std::vector<MethodResult>& blocks) {
  if (blocks.size() == 1) return blocks.front();
  const auto all = [&](const auto& of) {
    std::vector<at::Tensor> parts;
    parts.reserve(blocks.size());
    for (const MethodResult& block : blocks) parts.push_back(of(block));
    return at::cat(parts, 1);
  };
  MethodResult whole{.log_w = all([](const MethodResult& block) { return block.log_w; })};
  whole.estimate = log_normalizer(whole.log_w);
  if (blocks.front().reverse_log_w.defined()) {
    whole.reverse_log_w = all([](const MethodResult& block) { return block.reverse_log_w; });
    whole.upper = reverse_log_normalizer(whole.reverse_log_w);
  }
  if (blocks.front().works.defined()) {
    std::vector<at::Tensor> works;
    for (const MethodResult& block : blocks) works.push_back(block.works);
    whole.works = at::cat(works, 2);
  }
  if (blocks.front().distance.defined())
    whole.distance = all([](const MethodResult& block) { return block.distance; });
  at::Tensor accepted = at::zeros_like(blocks.front().accept_prob);
  for (const MethodResult& block : blocks) {
    accepted += block.accept_prob * static_cast<double>(block.log_w.size(1));
    whole.num_nonfinite += block.num_nonfinite;
    whole.cost += block.cost;
  }
  whole.accept_prob = accepted / static_cast<double>(whole.log_w.size(1));
  if (blocks.front().particles)
    whole.particles = {all([](const MethodResult& block) { return block.particles->z; }),
                       all([](const MethodResult& block) { return block.particles->log_w; }),
                       blocks.front().particles->num_resamplings};
  return whole;
}

}  // namespace crais
