// Models compared image by image.
#pragma once

#include "cli/command_line.h"

namespace crais {

/// Runs `eval-loglik compare A B [C ...]`: result folders, or models that it evaluates first, all
/// by the flags given. Returns the exit code. Throws Error: kArgument for fewer than two, flags
/// that folders have no use for, or other images; kData for damaged or unfinished folders.
int compare_evaluations(const CommandLine& cli);

}  // namespace crais
