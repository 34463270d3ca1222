// An estimation of a target's log normaliser, for the program and for Python.
#pragma once

#include <memory>

#include "core/target.h"
#include "evaluation/run_problems.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_report.h"

namespace crais {

/// The registered target that the settings name.
std::shared_ptr<const Target> named_target(const LogzSettings& settings);

/// Estimates, and writes the files that the settings ask for. Where the observer stopped it, the
/// report has the finished chunks. Throws Error kArgument where settings and target exclude each
/// other.
RunReport run_logz(LogzSettings settings, const std::shared_ptr<const Target>& target,
                   RunObserver& observer);

}  // namespace crais
