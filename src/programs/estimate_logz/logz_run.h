// An estimate of a target's log normaliser, for the program and for Python.
#pragma once

#include <memory>

#include "core/target.h"
#include "evaluation/run_problems.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_report.h"

namespace crais {

/// The registered target of the settings.
std::shared_ptr<const Target> named_target(const LogzSettings& settings);

/// Estimates, and writes the files of the settings. If the observer stops the run, the report has
/// the finished chunks. Throws Error kArgument if settings and target exclude each other.
RunReport run_logz(LogzSettings settings, const std::shared_ptr<const Target>& target,
                   RunObserver& observer);

}  // namespace crais
