// As many chains as each problem needs: `target_error` of each, `mean_error` of all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "evaluation/chunk_result.h"
#include "evaluation/parts.h"

namespace crais {

/// What pilot chains say of one problem's weights.
struct PilotWeights {
  int64_t num_chains = 0;
  double std_error = 0;       // of the log mean weight, nats
  double log_w_variance = 0;  // unbiased
};

/// Of each problem of pilot chains [P,K].
std::vector<PilotWeights> pilot_weights(const at::Tensor& log_w, const Genealogy& genealogy = {});

/// How many chains bring the standard error sqrt(v / K) and the bias v / 2K of a log mean weight
/// below `error` nats, with half of it to spare: `fewest` doubled as often as it takes, at most
/// `most`, at least 2. v is the relative variance of a weight, that of the pilot or, where a
/// handful of weights understates a heavy tail, that of a lognormal law.
int64_t chains_for(const PilotWeights& pilot, double error, int64_t fewest, int64_t most);

/// Where the error of a mean is to be small, chains go where they reduce it most: K = a sqrt(v)
/// makes both sum v / K and sum v / 2K, its variance and its bias, as small as so many chains can.
/// v is that of the pilot: no law need be guessed where other chains measure what is left.
/// Rounded up to 4, 6, 8, 12, 16, ..., so that few groups of problems are annealed together.
int64_t chains_by_spread(const PilotWeights& pilot, double per_spread, int64_t most);

/// How many chains each problem gets for `mean_error`.
struct MeanErrorPlan {
  int64_t chains = 0;                    // each; 0: as its own pilot says
  std::optional<ChainsBySpread> pilots;  // else absent
};

/// The cheapest plan with which the mean over `num_problems` problems like these has an error
/// sqrt(standard error^2 + bias^2) of at most options.mean_error: as many chains for all, or pilots
/// for each, which pay where problems differ much and the error is to be small. Some chains of each
/// of `pilots` choose, others measure what that leaves, with a standard error on top.
/// Cost: added to `cost`.
MeanErrorPlan plan_for_mean(const EstimatorParts& parts, const Problem& pilots, const Plan& plan,
                            int64_t num_problems, at::Generator& rng, Cost& cost);

/// Anneals pilot chains, then as many fresh ones as they ask for of each problem: the weights that
/// are reported have not decided anything. Problems that miss target_error are flagged.
/// Cost: in the run; of the pilots in `tuning`.
struct TargetedRun {
  ChunkRun run;
  Cost tuning;
};
/// With `by_spread` for `mean_error`, else for `target_error`.
TargetedRun estimate_to_error(const EstimatorParts& parts, const Method& method,
                              const Problem& problem, const Plan& plan,
                              const std::optional<ChainsBySpread>& by_spread, at::Generator& rng);

}  // namespace crais
