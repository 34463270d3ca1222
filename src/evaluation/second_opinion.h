// An independent look at a density whose base somebody has chosen.
#pragma once

#include "evaluation/doubts.h"
#include "evaluation/options.h"

namespace crais {

/// True for annealed estimates of replicates whose base is not the one that would look.
bool wants_second_opinion(const EstimateOptions& options, const Target& target,
                          const std::string& base);

/// A few estimates by the base mixture. Cost: added to `cost`, some 4 x 10^5 evaluations.
Witness second_opinion(const EstimateOptions& options, const Target& target, Cost& cost);

}  // namespace crais
