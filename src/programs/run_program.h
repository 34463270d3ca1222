// What every estimating program does around its run.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "evaluation/work_queue.h"
#include "programs/estimator_flags.h"
#include "programs/store_claims.h"
#include "report/progress.h"
#include "report/run_report.h"

namespace crais {

/// Under torchrun chunks are shared with its other workers, but for --queue none and where
/// `is_shard`: --shard was given. A worker that shares goes on with what the folder holds, with its
/// part of the cores and with a GPU of its own. Throws Error kArgument where no folder is shared,
/// or a launcher has set half of what it should.
void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard,
                     const Environment& variables = environment_variable);

/// Estimates `problems` in the folder that the settings name, if any, beside other workers where it
/// is shared, and writes the files of a report that is complete. Where the observer stopped it, the
/// report has the finished chunks.
/// `record` is what decides the results; `report_of` makes the report, less `run` and `progress`,
/// of finished chunks and of what is to be in summary.json for any program.
RunReport run_in_folder(
    const RunSettings& settings, nlohmann::json record, const ProblemSource& problems,
    const Estimator& estimator, const Shard& shard, RunObserver& observer,
    const std::function<RunReport(RunResults results, nlohmann::json summary)>& report_of);

/// Runs under a progress line and a handler of signals. Throws Error kInterrupted, which says how
/// to go on, where a signal or --max-time stopped it.
RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run);

/// On stdout, unless another worker says it.
void print(const RunReport& report, const RunSettings& settings);

}  // namespace crais
