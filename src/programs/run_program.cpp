#include "programs/run_program.h"

#include <iostream>

#include "programs/time_limit.h"
#include "report/table.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {
namespace {

/// Says what is done and how to go on, of a run that time or a signal stopped.
void throw_of_stopped(const Progressed& progress, const TimeLimit& limit, const std::string& unit,
                      const RunSettings& settings) {
  const std::string done =
      with_commas(progress.done) + " of " + with_commas(progress.total) + " " + unit + " done";
  const bool is_plain = is_shared(settings) || settings.store.extend;  // --resume is implied
  if (settings.out.empty()) throw_if_interrupted(done + ", nothing is kept: there is no --out");
  if (limit.is_over() && !limit.has_advanced())
    throw Error(ErrorKind::kInterrupted, "time is up before a chunk was begun; " + done + "; " +
                                             (is_plain ? "a" : "--resume with a") +
                                             " longer --max-time goes on from there");
  const std::string advice =
      done + "; the same command" + (is_plain ? "" : " with --resume") + " goes on from there";
  if (limit.is_over()) throw Error(ErrorKind::kInterrupted, "time is up; " + advice);
  throw_if_interrupted(advice);
}

}  // namespace

RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run) {
  install_interrupt_handler();
  RunProgressOptions line = shown;
  line.enabled &= !is_shared(settings);  // workers would write over each other's
  RunProgress progress(line);
  TimeLimit limit(progress, settings.max_time);
  RunReport report = run(limit);
  progress.finish();
  if (!report.is_complete()) throw_of_stopped(report.progress, limit, shown.unit, settings);
  if (report.is_elsewhere && !settings.quiet)
    std::cerr << shown.program << ": all " << with_commas(report.progress.total) << " "
              << shown.unit << " are done; another worker has written the report in "
              << settings.out << "\n";
  return report;
}

int run_program(const RunSettings& settings, const RunProgressOptions& shown,
                const std::function<RunReport(RunObserver&)>& run) {
  const RunReport report = complete_run(settings, shown, run);
  if (!report.is_elsewhere) print(report, settings.out, settings.format, stdout_width());
  return 0;
}

}  // namespace crais
