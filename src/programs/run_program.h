// The frame of a run in every estimating program.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "programs/estimator_flags.h"
#include "report/progress.h"
#include "report/run_report.h"

namespace crais {

/// Under torchrun (RANK and WORLD_SIZE) the processes share the folder, except with --shard
/// (`is_shard`): process k of n computes every n-th chunk, and resumes. It uses its part of the
/// cores and its own GPU. Throws Error kArgument if there is no folder to share, or if one of the
/// two variables is missing or invalid.
void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard);

/// Estimates `problems` in the folder of the settings, if there is one. Writes the files once the
/// report is complete; of several processes that share the folder, one that finds the run whole
/// does. If the observer stops the run, the report holds the finished chunks. `record` holds the
/// settings that determine the results. `report_of` makes the report, without `run` and `progress`,
/// from finished chunks and from the common part of summary.json.
RunReport run_in_folder(
    const RunSettings& settings, nlohmann::json record, const ProblemSource& problems,
    const Estimator& estimator, const Shard& shard, RunObserver& observer,
    const std::function<RunReport(RunResults results, nlohmann::json summary)>& report_of);

/// Runs with a progress line and a signal handler. Throws Error kInterrupted, which says how to
/// continue, if a signal or --max-time stopped the run.
RunReport complete_run(const RunSettings& settings, const ProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run);

/// Seconds since the program began.
double seconds_of_process();

/// Forwards to another observer. Stops the run when the time is over, or when a chunk that started
/// now would end too late if it took as long as the longest chunk of this run. A pilot is never
/// stopped: its plan is stored before the first chunk. A started chunk is finished.
class TimeLimit : public RunObserver {
 public:
  /// `limit` in seconds; without a limit the run never stops here. `elapsed` measures the time.
  TimeLimit(RunObserver& observer, std::optional<double> limit,
            std::function<double()> elapsed = seconds_of_process);

  void begin(int64_t done, int64_t total) override;
  void chunk(const ChunkResult& result) override;
  bool stop() override;

  /// True if the time limit stopped the run.
  bool is_over() const;
  /// True if a chunk was computed in this run.
  bool has_advanced() const;

 private:
  RunObserver& observer_;
  std::optional<double> limit_;
  std::function<double()> elapsed_;
  mutable std::mutex mutex_;                 // guards all below: threads call at the same time
  std::map<std::thread::id, double> begun_;  // time at which a thread started its chunk
  double longest_ = 0;                       // duration of the longest chunk, seconds
  bool is_over_ = false, has_advanced_ = false;
};

/// Prints the report on stdout, with flags in place of fields, unless another process prints it.
void print(RunReport report, const std::string& folder, const std::string& format);

}  // namespace crais
