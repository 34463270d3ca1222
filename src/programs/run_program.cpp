#include "programs/run_program.h"

#include "programs/time_limit.h"
#include "report/terminal.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {
namespace {

/// Says what is done and how to go on, of a run that time or a signal stopped.
void throw_of_stopped(const Progressed& progress, const TimeLimit& limit, const std::string& unit,
                      bool is_kept) {
  const std::string done =
      with_commas(progress.done) + " of " + with_commas(progress.total) + " " + unit + " done";
  if (!is_kept) throw_if_interrupted(done + ", nothing is kept: there is no --out");
  if (limit.is_over() && !limit.has_advanced())
    throw Error(ErrorKind::kInterrupted,
                "time is up before a chunk was begun; " + done +
                    "; --resume with a longer --max-time goes on from there");
  const std::string advice = done + "; the same command with --resume goes on from there";
  if (limit.is_over()) throw Error(ErrorKind::kInterrupted, "time is up; " + advice);
  throw_if_interrupted(advice);
}

}  // namespace

RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run) {
  install_interrupt_handler();
  RunProgress progress(shown);
  TimeLimit limit(progress, settings.max_time);
  RunReport report = run(limit);
  progress.finish();
  if (!report.is_complete())
    throw_of_stopped(report.progress, limit, shown.unit, !settings.out.empty());
  return report;
}

int run_program(const RunSettings& settings, const RunProgressOptions& shown,
                const std::function<RunReport(RunObserver&)>& run) {
  print(complete_run(settings, shown, run), settings.out, settings.format, stdout_width());
  return 0;
}

}  // namespace crais
