// The program reproduce.
#pragma once

#include "cli/command_line.h"

namespace crais {

Synopsis reproduce_synopsis();

/// The program: runs experiments by name, one folder of findings each.
int reproduce(const CommandLine& cli);

}  // namespace crais
