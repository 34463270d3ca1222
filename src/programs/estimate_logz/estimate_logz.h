// The program estimate-logz.
#pragma once

#include "cli/command_line.h"

namespace crais {

/// Returns the exit code. Throws Error as the parts do.
int estimate_logz(const CommandLine& cli);

}  // namespace crais
