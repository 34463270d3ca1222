// Chains under a frozen plan.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.h"
#include "estimates/method.h"
#include "evaluation/chunk_result.h"

namespace crais {

/// The estimate of `plan.num_particles` chains, of the user's problems where the base has parts.
/// Independent chains have random streams of a bounded number each: `blocks` receives them, those
/// that `earlier` holds already are kept. Cost: in the result.
MethodResult estimate_under(const Plan& plan, const Method& method, const Problem& problem,
                            uint64_t seed, const std::vector<ChainBlock>& earlier,
                            std::vector<ChainBlock>& blocks);

}  // namespace crais
