// The program reproduce.
#pragma once

#include "cli/command_line.h"

namespace crais {

Synopsis reproduce_synopsis();

/// Runs experiments by name, with a folder of findings for each.
int reproduce(const CommandLine& cli);

}  // namespace crais
