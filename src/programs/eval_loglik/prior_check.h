// Whether a model's p(z) integrates to 1. Whatever it integrates to moves log p(x) by as much, and
// nothing else would show it.
#pragma once

#include <string>

#include "programs/eval_loglik/model.h"

namespace crais {

/// Throws Error kData where it clearly does not, and nobody accepts that. Returns why its integral
/// is in doubt; "" where all is well, or where the prior is one that has a formula.
/// Cost: a thousand evaluations of p(z) for each of 16 replicates, and none of the decoder.
std::string check_prior(const EvalModel& model, bool is_accepted, int64_t threads);

}  // namespace crais
