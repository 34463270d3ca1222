// As many chains as each problem needs: `target_error`.
#pragma once

#include <cstdint>
#include <map>
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

/// How many chains bring the standard error sqrt(v / K) and the bias v / 2K of a log mean weight
/// below `error` nats, with half of it to spare: `fewest` doubled as often as it takes, at most
/// `most`, at least 2. v is the relative variance of a weight, that of the pilot or, where a
/// handful of weights understates a heavy tail, that of a lognormal law.
int64_t chains_for(const PilotWeights& pilot, double error, int64_t fewest, int64_t most);

/// Anneals pilot chains, then as many fresh ones as `chains_for` says for each problem: the weights
/// that are reported have not decided anything. Problems that do not get there are flagged.
/// Cost: in the run; of the pilots in `tuning`.
struct TargetedRun {
  ChunkRun run;
  Cost tuning;
};
TargetedRun estimate_to_error(const EstimatorParts& parts, const Method& method,
                              const Problem& problem, const Plan& plan, at::Generator& rng);

}  // namespace crais
