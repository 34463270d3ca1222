// What every estimating program does around its run.
#pragma once

#include <functional>

#include "programs/estimator_flags.h"
#include "report/progress.h"
#include "report/run_report.h"

namespace crais {

/// Runs under a progress line and a handler of signals. Throws Error kInterrupted, which says how
/// to go on, where a signal or --max-time stopped it.
RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run);

/// The same, and prints the report.
int run_program(const RunSettings& settings, const RunProgressOptions& shown,
                const std::function<RunReport(RunObserver&)>& run);

}  // namespace crais
