// The eval-loglik program, callable from tests.
#pragma once

#include "cli/command_line.h"

namespace crais {

/// Runs `eval-loglik CHECKPOINT` or `eval-loglik merge DIR... --out DIR`. Returns the exit code;
/// throws Error.
int eval_loglik(const CommandLine& cli);

}  // namespace crais
