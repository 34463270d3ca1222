#include "targets/function_target.h"

#include <utility>

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
  if (options.starts.defined()) traits_.starts = options.starts;
  if (options.num_problems < 1 || options.dim < 1)
    throw argument_error("a FunctionTarget needs at least one problem and one dimension, not ",
                         options.num_problems, " and ", options.dim);
  if (options.starts.defined() && (options.starts.dim() != 2 || options.starts.size(1) != dim_))
    throw argument_error("`starts` of a FunctionTarget of dimension ", dim_, " are [S,", dim_, "]");
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

}  // namespace crais
