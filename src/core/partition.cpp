#include "core/partition.h"

#include <limits>
#include <utility>
#include <vector>

namespace crais {
namespace {

/// `x` [Q] expanded to the shape of `values` [Q,...].
at::Tensor expanded(const at::Tensor& x, const at::Tensor& values) {
  std::vector<int64_t> shape(static_cast<size_t>(values.dim()), 1);
  shape[0] = x.size(0);
  return x.to(values.device()).view(shape).expand_as(values);
}

at::Tensor made(const at::Tensor& values, int64_t num_problems, double start) {
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = num_problems;
  return at::full(shape, start, values.options());
}

}  // namespace

Partition Partition::by_mass(at::Tensor problem, const at::Tensor& log_mass, int64_t num_problems) {
  Partition made{std::move(problem), log_mass, num_problems};
  made.log_share = log_mass - made.log_sum_exp(log_mass).index_select(0, made.problem);
  return made;
}

at::Tensor Partition::counts() const { return at::bincount(problem, {}, num_problems); }

at::Tensor Partition::rows_of(const at::Tensor& index) const {
  std::vector<at::Tensor> rows;
  const at::Tensor problems = index.to(problem.device());
  for (int64_t i = 0; i < problems.size(0); ++i)
    rows.push_back(at::nonzero(problem == problems[i]).flatten());
  return at::cat(rows);
}

Partition Partition::select(const at::Tensor& index) const {
  const at::Tensor problems = index.to(problem.device());
  const at::Tensor places = at::arange(problems.size(0), problem.options());
  return {places.repeat_interleave(counts().index_select(0, problems)),
          log_share.index_select(0, rows_of(index)), problems.size(0)};
}

at::Tensor Partition::log_sum_exp(const at::Tensor& values) const {
  const at::Tensor index = expanded(problem, values);
  const at::Tensor highest = made(values, num_problems, -std::numeric_limits<double>::infinity())
                                 .scatter_reduce(0, index, values, "amax");
  const at::Tensor shift = at::where(highest.isfinite(), highest, at::zeros_like(highest));
  return sum((values - shift.gather(0, index)).exp()).log() + shift;
}

at::Tensor Partition::sum(const at::Tensor& values) const {
  return made(values, num_problems, 0).scatter_add(0, expanded(problem, values), values);
}

at::Tensor Partition::mean(const at::Tensor& values) const {
  const at::Tensor total = sum(values);
  return total / expanded(counts(), total).to(total.options());
}

}  // namespace crais
