// Shards of one evaluation, put together.
#pragma once

#include "cli/command_line.h"

namespace crais {

/// Runs `eval-loglik merge DIR... --out DIR`. Returns the exit code.
/// Throws Error kData for gaps, duplicates and folders of another run.
int merge_evaluations(const CommandLine& cli);

}  // namespace crais
