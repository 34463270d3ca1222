#include "programs/run_program.h"

#include "report/terminal.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {

RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run) {
  install_interrupt_handler();
  RunProgress progress(shown);
  RunReport report = run(progress);
  progress.finish();
  if (!report.is_complete())
    throw_if_interrupted(with_commas(report.progress.done) + " of " +
                         with_commas(report.progress.total) + " " + shown.unit + " done" +
                         (settings.out.empty()
                              ? ", nothing is kept: there is no --out"
                              : "; the same command with --resume goes on from there"));
  return report;
}

int run_program(const RunSettings& settings, const RunProgressOptions& shown,
                const std::function<RunReport(RunObserver&)>& run) {
  print(complete_run(settings, shown, run), settings.out, settings.format, stdout_width());
  return 0;
}

}  // namespace crais
