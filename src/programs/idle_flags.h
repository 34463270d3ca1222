// Flags of estimates that do nothing beside the others.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "evaluation/options.h"

namespace crais {

/// Throws Error kArgument for the first flag that was chosen though an estimate with these options
/// has no use for it. `problem` as for estimator_options; `options` are what the flags have come
/// to.
void refuse_idle(const CommandLine& cli, const EstimateOptions& options,
                 const std::string& problem);

}  // namespace crais
