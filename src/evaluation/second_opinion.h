// An independent look at a density whose base somebody has chosen.
#pragma once

#include "evaluation/chunk_result.h"
#include "evaluation/options.h"

namespace crais {

/// True for annealed estimates of replicates whose base is not the one that would look.
bool wants_second_opinion(const EstimateOptions& options, const Target& target,
                          const std::string& base);

/// A few estimates by the base mixture, which neither the base that was asked for nor its chains
/// know of: a lower bound on average. Cost: added to `cost`, some 4 x 10^5 evaluations.
Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost);

}  // namespace crais
