// The eval-loglik program, callable from tests.
#pragma once

#include "cli/command_line.h"

namespace crais {

/// Runs `eval-loglik curve MODEL`; `cli` is of curve_synopsis.
int evaluate_curve(const CommandLine& cli);

/// Runs `eval-loglik MODEL`, `compare`, `diagnose` or `merge`. Returns the exit code; throws Error.
int eval_loglik(const CommandLine& cli);

}  // namespace crais
