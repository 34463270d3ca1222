#include "evaluation/comparison.h"

#include <ATen/ATen.h>

#include <cmath>

#include "evaluation/chunk_result.h"

namespace crais {
namespace {

at::Tensor tensor_of(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

MeanEstimate mean_of(const at::Tensor& values, const at::Tensor& std_errors) {
  return mean_over_images(values.unsqueeze(0), std_errors.unsqueeze(0));
}

}  // namespace

ImageEstimates::ImageEstimates(const MethodTable& table) {
  const at::Tensor errors = table.matrix("std_error");
  const auto repeats = static_cast<double>(errors.size(0));
  value = to_column(table.matrix("log_normalizer").mean(0));
  std_error = to_column(errors.square().sum(0).sqrt() / repeats);
  bias = table.has("bias") ? to_column(table.matrix("bias").mean(0))
                           : std::vector<double>(value.size(), NAN);
  for (const int64_t flags : table.any_flags()) flagged.push_back(flags != 0);
}

Comparison compare(const ImageEstimates& a, const ImageEstimates& b) {
  TORCH_CHECK(a.value.size() == b.value.size() && !a.value.empty(), "images are not the same");
  const at::Tensor in_a = tensor_of(a.value), in_b = tensor_of(b.value);
  const at::Tensor difference = in_a - in_b;
  const at::Tensor std_error =
      (tensor_of(a.std_error).square() + tensor_of(b.std_error).square()).sqrt();
  const auto count = static_cast<int64_t>(a.value.size());

  Comparison c{.difference = mean_of(difference, std_error)};
  const double reach = interval_width(count) * c.difference.data_std_error;
  c.low = c.difference.mean - reach;
  c.high = c.difference.mean + reach;
  c.unpaired_std_error = std::hypot(std_error_of_mean(in_a), std_error_of_mean(in_b));
  c.bias = (tensor_of(a.bias) - tensor_of(b.bias)).mean().item<double>();
  c.share_better = difference.gt(0).to(at::kDouble).mean().item<double>();
  c.share_std_error = std::sqrt(c.share_better * (1 - c.share_better) / static_cast<double>(count));
  c.clearly_better = (difference > 2 * std_error).sum().item<int64_t>();
  c.clearly_worse = (difference < -2 * std_error).sum().item<int64_t>();
  std::vector<int64_t> trusted;
  for (int64_t i = 0; i < count; ++i)
    if (!a.flagged[static_cast<size_t>(i)] && !b.flagged[static_cast<size_t>(i)])
      trusted.push_back(i);
  c.flagged = count - static_cast<int64_t>(trusted.size());
  if (c.flagged > 0 && !trusted.empty()) {
    const at::Tensor rows = at::tensor(trusted, at::kLong);
    c.unflagged = mean_of(difference.index_select(0, rows), std_error.index_select(0, rows));
  }
  c.per_image = to_column(difference);
  c.std_error = to_column(std_error);
  return c;
}

}  // namespace crais
