#include "targets/function_target.h"

#include <utility>

#include "core/rng.h"
#include "util/error.h"

namespace crais {

FunctionTarget::FunctionTarget(const FunctionTargetOptions& options, LogDensity log_density)
    : FunctionTarget(options,
                     IndexedLogDensity([log_density = std::move(log_density)](
                                           const at::Tensor& z, const at::Tensor& /*index*/) {
                       return log_density(z);
                     })) {
  // Only replicates of one density can be selected: several problems may differ from each other.
  traits_.can_select = options.num_problems == 1;
}

FunctionTarget::FunctionTarget(const FunctionTargetOptions& options, IndexedLogDensity log_density)
    : log_density_(std::move(log_density)),
      index_(at::arange(options.num_problems, options.tensors.dtype(at::kLong))),
      dim_(options.dim) {
  traits_.tensors = options.tensors;
  traits_.can_select = true;
  traits_.has_prior = options.has_prior;
  if (options.starts.defined()) traits_.starts = options.starts;
  if (options.num_problems < 1 || options.dim < 1)
    throw argument_error("a FunctionTarget needs at least one problem and one dimension, not ",
                         options.num_problems, " and ", options.dim);
  if (options.starts.defined() && (options.starts.dim() != 2 || options.starts.size(1) != dim_))
    throw argument_error("`starts` of a FunctionTarget of dimension ", dim_, " are [S,", dim_, "]");
  if (!options.draws.defined()) return;
  const int64_t problems = options.num_problems;
  if (options.draws.dim() != 3 || options.draws.size(2) != dim_ ||
      options.draws.size(1) < 2 * problems)
    throw argument_error("`draws` are [C,N,", dim_, "], at least ", 2 * problems, " of each chain");
  const int64_t half = options.draws.size(1) / 2, each = half / problems;
  traits_.draws = options.draws.slice(1, 0, half);
  draws_ = options.draws.narrow(1, half, problems * each)
               .reshape({-1, problems, each, dim_})
               .transpose(0, 1)
               .flatten(1, 2)
               .to(options.tensors);
}

at::Tensor FunctionTarget::log_density(const at::Tensor& z) const {
  at::Tensor value = log_density_(z, index_);
  if (!value.defined() || value.sizes() != z.sizes().slice(0, z.dim() - 1)) {
    throw argument_error(c10::str("the log density of z ", z.sizes(), " must be ",
                                  z.sizes().slice(0, z.dim() - 1), ", not "),
                         (value.defined() ? c10::str(value.sizes()) : "undefined"));
  }
  return value;
}

std::shared_ptr<const Target> FunctionTarget::select(const at::Tensor& index) const {
  if (!traits_.can_select) return Target::select(index);
  auto part = std::make_shared<FunctionTarget>(*this);
  part->index_ = index_.index_select(0, index);
  return part;
}

std::optional<at::Tensor> FunctionTarget::exact_sample(int64_t k, at::Generator& rng) const {
  if (!draws_.defined()) return {};
  const int64_t count = draws_.size(1);
  const at::Tensor own = draws_.index_select(0, index_);
  const at::Tensor order =
      fill_uniform(at::empty({own.size(0), count}, own.options().dtype(at::kDouble)), rng)
          .argsort(int64_t{1})
          .repeat({1, (k + count - 1) / count})
          .slice(1, 0, k);
  return own.gather(1, order.unsqueeze(2).expand({-1, -1, dim_}));
}

}  // namespace crais
