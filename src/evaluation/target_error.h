// The number of chains for a given error: `target_error` for each problem, `mean_error` for the
// mean.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "evaluation/chunk_result.h"
#include "evaluation/parts.h"

namespace crais {

/// Statistics of one problem's weights from pilot chains.
struct PilotWeights {
  int64_t num_chains = 0;
  double std_error = 0;       // of the log mean weight, nats
  double log_w_variance = 0;  // unbiased
};

/// The statistics of each problem, from the log-weights [P,K] of pilot chains.
std::vector<PilotWeights> pilot_weights(const at::Tensor& log_w, const Genealogy& genealogy = {});

/// The number of chains that brings the standard error sqrt(v / K) and the bias v / 2K of a log
/// mean weight below half of `error` nats: `fewest` doubled as often as necessary, at most `most`,
/// at least 2. v is the relative variance of a weight: that of the pilot, or that of a lognormal
/// law if a few weights understate a heavy tail.
int64_t chains_for(const PilotWeights& pilot, double error, int64_t fewest, int64_t most);

/// The number of chains for a small error of the mean: chains go where they reduce it most. K = a
/// sqrt(v) minimises both sum v / K and sum v / 2K, the variance and the bias of the mean, for a
/// given total number of chains. v is that of the pilot: other chains measure the remaining error,
/// so no law need be assumed. Rounded up to 4, 6, 8, 12, 16, ..., so that few groups of problems
/// are annealed together.
int64_t chains_by_spread(const PilotWeights& pilot, double per_spread, int64_t most);

/// The number of chains of each problem for `mean_error`.
struct MeanErrorPlan {
  int64_t chains = 0;                    // of each problem; 0: from its own pilot
  std::optional<ChainsBySpread> pilots;  // absent if `chains` is not 0
};

/// The cheapest plan for which the mean over `num_problems` problems like these has an error
/// sqrt(standard error^2 + bias^2) of at most options.mean_error. Either all problems get equally
/// many chains, or each gets a pilot, which is cheaper if problems differ much and the error must
/// be small. Some chains of each of `pilots` choose; the others measure the remaining error, to
/// which its standard error is added. Cost: added to `cost`.
MeanErrorPlan plan_for_mean(const EstimatorParts& parts, const Problem& pilots, const Plan& plan,
                            int64_t num_problems, at::Generator& rng, Cost& cost);

/// Anneals pilot chains, then as many new chains of each problem as the pilot asks for: the
/// reported weights have not decided anything. Problems that miss target_error are flagged. Cost:
/// in the run; that of the pilots in `tuning`.
struct TargetedRun {
  ChunkRun run;
  Cost tuning;
};
/// Estimates for `mean_error` if `by_spread` is set, else for `target_error`.
TargetedRun estimate_to_error(const EstimatorParts& parts, const Method& method,
                              const Problem& problem, const Plan& plan,
                              const std::optional<ChainsBySpread>& by_spread, at::Generator& rng);

}  // namespace crais
