#include "evaluation/chunk_result.h"

#include <algorithm>

namespace crais {

const std::vector<std::pair<Flag, std::string>>& all_flags() {
  static const std::vector<std::pair<Flag, std::string>> kAll = {
      {kFewEffective, "ess"}, {kTail, "tail"}, {kBaseFailed, "base"}, {kMissedTarget, "target"},
      {kModes, "modes"},      {kGap, "gap"},   {kApart, "apart"}};
  return kAll;
}

std::string flag_words(int64_t flags) {
  std::string words;
  for (const auto& [flag, word] : all_flags())
    if (flags & flag) words += (words.empty() ? "" : "+") + word;
  return words;
}

const std::vector<ChunkRun::Named>& ChunkRun::columns() {
  static const std::vector<Named> kAll = {
      {"log_normalizer", &ChunkRun::log_normalizer},
      {"std_error", &ChunkRun::std_error},
      {"bias", &ChunkRun::bias},
      {"ess", &ChunkRun::ess},
      {"pareto_k", &ChunkRun::pareto_k},
      {"accept_prob", &ChunkRun::accept_prob},
      {"upper", &ChunkRun::upper},
      {"upper_std_error", &ChunkRun::upper_std_error},
      {"distance", &ChunkRun::distance, true},
      {"distance_std_error", &ChunkRun::distance_std_error, true},
      {"met", &ChunkRun::met, true},
      {"evaluations", &ChunkRun::evaluations}};
  return kAll;
}

std::vector<double> to_column(const at::Tensor& values) {
  if (!values.defined()) return {};
  const at::Tensor plain = values.to(at::kCPU, at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

ChunkRun to_run(const MethodResult& found, int64_t num_problems) {
  const Estimate& lower = found.estimate;
  ChunkRun run{.log_normalizer = to_column(lower.value),
               .std_error = to_column(lower.std_error),
               .bias = to_column(lower.bias),
               .ess = to_column(lower.ess),
               .pareto_k = to_column(lower.pareto_k),
               .accept_prob = to_column(found.accept_prob)};
  if (found.upper) {
    run.upper = to_column(found.upper->value);
    run.upper_std_error = to_column(found.upper->std_error);
  }
  if (found.distance.defined()) {
    const at::Tensor mean = found.distance.mean(1), met = found.distance.isfinite().to(at::kDouble);
    const at::Tensor variance = (found.distance - mean.unsqueeze(1)).square().mean(1);
    const at::Tensor error = (variance / static_cast<double>(met.size(1) - 1)).sqrt();
    run.distance = to_column(mean.clamp_max(1));
    run.distance_std_error = to_column(at::where(mean < 1, error, 0));
    run.met = to_column(met.mean(1));
  }
  run.evaluations = ChunkRun::Column(
      static_cast<size_t>(num_problems),
      static_cast<double>(found.cost.densities) / static_cast<double>(num_problems));
  const at::Tensor few = suspect_error(lower).cpu(), tail = suspect_tail(lower).cpu();
  run.flags.resize(static_cast<size_t>(num_problems));
  for (int64_t i = 0; i < num_problems; ++i) {
    const auto row = static_cast<size_t>(i);
    int64_t& flags = run.flags[row];
    if (few[i].item<bool>()) flags |= kFewEffective;
    if (tail[i].item<bool>()) flags |= kTail;
    if (found.upper && run.upper[row] - run.log_normalizer[row] > kLargeGap) flags |= kGap;
    if (!run.distance.empty() && run.distance[row] >= 1) flags |= kApart;
  }
  run.num_nonfinite = found.num_nonfinite;
  run.cost = found.cost;
  run.works = found.works;
  return run;
}

Round round_of(const ChunkRun& run) {
  const at::Tensor value = at::tensor(run.log_normalizer, at::kDouble);
  const double std_error = std_error_of_replicates(value, at::tensor(run.std_error, at::kDouble));
  const double error =
      std::hypot(std_error, at::tensor(run.bias, at::kDouble).mean().item<double>());
  return {at::tensor(run.evaluations, at::kDouble).mean().item<double>(),
          value.mean().item<double>(),
          std::isnan(error) ? std::numeric_limits<double>::infinity() : error};
}

}  // namespace crais
