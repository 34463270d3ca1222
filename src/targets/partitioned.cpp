#include "targets/partitioned.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace crais {

PartitionedTarget::PartitionedTarget(const Target& target, const AffineMap& normals,
                                     const Partition& partition)
    : whole_(target.shared()),
      rows_(target.select(partition.problem)),
      partition_(partition),
      own_(at::arange(partition.num_parts(), partition.problem.options())) {
  traits_.tensors = rows_->options();
  traits_.can_select = true;
  traits_.forgives_starts = rows_->traits().forgives_starts;
  traits_.forces_pay = rows_->traits().forces_pay;
  const at::Tensor root = normals.matrix();
  const at::Tensor inverse = at::linalg_solve_triangular(
      root.to(at::kDouble),
      at::eye(root.size(1), root.options().dtype(at::kDouble)).expand_as(root),
      /*upper=*/false);
  const double half_log_2_pi = 0.5 * std::log(2.0 * M_PI);
  normals_ =
      std::make_shared<Normals>(Normals{normals.loc(), inverse.to(root.scalar_type()),
                                        partition.log_share - normals.log_abs_det() -
                                            half_log_2_pi * static_cast<double>(normals.dim())});
  const at::Tensor counts = partition.counts(), first = counts.cumsum(0) - counts;
  const at::Tensor place = at::arange(counts.max().item<int64_t>(), own_.options()).unsqueeze(0);
  const at::Tensor all = at::where(place < counts.unsqueeze(1), first.unsqueeze(1) + place, -1);
  members_ = all.index_select(0, partition.problem);
}

at::Tensor PartitionedTarget::places() const {
  return std::get<1>((members_ == own_.unsqueeze(1)).to(at::kLong).max(1));
}

at::Tensor PartitionedTarget::log_components(const at::Tensor& z) const {
  std::vector<at::Tensor> logs;
  for (int64_t j = 0; j < members_.size(1); ++j) {
    const at::Tensor member = members_.select(1, j), normal = member.clamp_min(0);
    const at::Tensor e = at::bmm(z - normals_->loc.index_select(0, normal).unsqueeze(1),
                                 normals_->inverse.index_select(0, normal).transpose(1, 2));
    const at::Tensor log_density = normals_->log_scale.index_select(0, normal).unsqueeze(1) -
                                   0.5 * e.to(at::kDouble).square().sum(-1);
    logs.push_back(log_density.masked_fill((member < 0).unsqueeze(1),
                                           -std::numeric_limits<double>::infinity()));
  }
  return at::stack(logs);
}

at::Tensor PartitionedTarget::log_responsibility(const at::Tensor& z) const {
  return responsibility(z, /*with_gradient=*/false).log_density;
}

Evaluation PartitionedTarget::responsibility(const at::Tensor& z, bool with_gradient) const {
  if (members_.size(1) == 1)  // no row has neighbours, and a matrix for each would be for nothing
    return {at::zeros({z.size(0), z.size(1)}, z.options().dtype(at::kDouble)),
            with_gradient ? at::zeros_like(z) : at::Tensor()};
  const at::Tensor logs = log_components(z);
  const at::Tensor own =
      logs.gather(0, places().view({1, -1, 1}).expand({1, logs.size(1), logs.size(2)})).squeeze(0);
  const at::Tensor total = at::logsumexp(logs, 0);
  if (!with_gradient) return {own - total, at::Tensor()};
  // grad log N_j = A_j^-T A_j^-1 (m_j - z). grad log r of a row is that of its own normal minus the
  // mean over the normals j under r_j.
  const at::Tensor shares = (logs - total).exp().to(z.scalar_type());
  at::Tensor grad = at::zeros_like(z);
  for (int64_t j = 0; j < members_.size(1); ++j) {
    const at::Tensor member = members_.select(1, j), normal = member.clamp_min(0);
    const at::Tensor inverse = normals_->inverse.index_select(0, normal);
    const at::Tensor e =
        at::bmm(normals_->loc.index_select(0, normal).unsqueeze(1) - z, inverse.transpose(1, 2));
    const at::Tensor weight = (member == own_).to(z.scalar_type()).unsqueeze(1) - shares[j];
    grad = grad + weight.unsqueeze(2) * at::bmm(e, inverse);
  }
  return {own - total, grad};
}

at::Tensor PartitionedTarget::log_density(const at::Tensor& z) const {
  return rows_->log_density(z).to(at::kDouble) + log_responsibility(z);
}

Evaluation PartitionedTarget::evaluate(const at::Tensor& z) const {
  const Evaluation found = rows_->evaluate(z);
  const Evaluation part = responsibility(z, /*with_gradient=*/true);
  return {found.log_density.to(at::kDouble) + part.log_density, found.grad + part.grad};
}

std::shared_ptr<const Target> PartitionedTarget::with_forces(at::ScalarType dtype) const {
  const auto rows = rows_->with_forces(dtype);
  if (!rows) return {};
  auto forced = std::make_shared<PartitionedTarget>(*this);
  forced->rows_ = rows;
  return forced;
}

std::shared_ptr<const Target> PartitionedTarget::select(const at::Tensor& index) const {
  auto selected = std::make_shared<PartitionedTarget>(*this);
  selected->rows_ = rows_->select(index);
  selected->own_ = own_.index_select(0, index);
  selected->members_ = members_.index_select(0, index);
  return selected;
}

std::optional<at::Tensor> PartitionedTarget::exact_sample(int64_t k, at::Generator& rng) const {
  const auto draws = whole_->exact_sample(k, rng);
  if (!draws) return {};
  return draws->index_select(0, partition_.problem.index_select(0, own_));
}

at::Tensor draw_labels(const at::Tensor& logs, at::Generator& rng) {
  const at::Tensor gumbel = -(-fill_uniform(at::empty_like(logs), rng).log()).log();
  return (logs + gumbel).argmax(0);
}

}  // namespace crais
