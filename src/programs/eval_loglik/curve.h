// eval-loglik curve: rate and distortion at every temperature of one anneal.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "programs/eval_loglik/settings.h"

namespace crais {

/// True for `eval-loglik curve ...`, whose flags are not those of eval-loglik.
bool is_curve(const std::vector<std::string>& arguments);

Synopsis curve_synopsis();
/// The evaluation that a curve is: one method, from the prior.
EvalSettings read_curve(const CommandLine& cli);

}  // namespace crais
