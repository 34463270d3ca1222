// Chains under a frozen plan.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "estimates/method.h"

namespace crais {

/// The estimate of `plan.num_particles` chains, of the user's problems where the base has parts.
/// Independent chains have random streams of a bounded number each. Cost: in the result.
MethodResult estimate_under(const Plan& plan, const Method& method, const Problem& problem,
                            uint64_t seed);

}  // namespace crais
