#include "evaluation/second_opinion.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "evaluation/estimator.h"
#include "evaluation/parts.h"

namespace crais {
namespace {

constexpr int64_t kEstimates = 4;
constexpr int64_t kChunk = static_cast<int64_t>(kSharedStream - 2);  // its streams are nobody's

}  // namespace

bool wants_second_opinion(const EstimateOptions& options, const Target& target,
                          const std::string& base) {
  return options.witness && target.is_replicated() && base.rfind("mixture", 0) != 0 &&
         std::find(options.methods.begin(), options.methods.end(), "ais") != options.methods.end();
}

Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost) {
  EstimateOptions own;
  own.base = "mixture";
  own.chains = 32;
  own.steps = 96;
  own.resampling = "systematic:0.5";
  own.seed = options.seed;
  const auto replicates = target.select(at::zeros({kEstimates}, target.options().dtype(at::kLong)));
  const ChunkResult found = Estimator(own).tune(*replicates).estimate(kChunk, *replicates);
  cost += found.base + found.tuning + found.runs.front().cost;
  const at::Tensor value = at::tensor(found.runs.front().log_normalizer, at::kDouble);
  const at::Tensor std_error = at::tensor(found.runs.front().std_error, at::kDouble);
  // Four numbers know little of their spread; their own errors have a say.
  const double spread = value.std().item<double>(),
               own_error = std_error.square().mean().sqrt().item<double>();
  const std::vector<int64_t>& flags = found.runs.front().flags;
  const auto flagged = std::count_if(flags.begin(), flags.end(), [](int64_t f) { return f != 0; });
  return {value.mean().item<double>(),
          1.5 * std::max(spread, own_error) / std::sqrt(double{kEstimates}),
          2 * flagged >= kEstimates};
}

}  // namespace crais
