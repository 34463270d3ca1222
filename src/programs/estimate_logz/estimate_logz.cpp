#include "programs/estimate_logz/estimate_logz.h"

#include <c10/core/GradMode.h>

#include <iostream>
#include <memory>

#include "programs/estimate_logz/logz_run.h"
#include "programs/estimate_logz/report.h"
#include "programs/estimate_logz/settings.h"
#include "report/run_progress.h"
#include "report/terminal.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/parallel.h"

namespace crais {

int estimate_logz(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    std::cout << list_targets(stdout_width());
    return 0;
  }
  const LogzSettings settings = read_logz_settings(cli);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const LogzRun run(settings, named_target(settings));
  if (!settings.quiet) std::cerr << run.notice();
  install_interrupt_handler();
  RunProgress progress(
      {"estimate-logz", "problems", "log Z", "no problem is done yet", !settings.quiet});
  const RunReport report = run.run(progress);
  progress.finish();
  if (!report.is_complete())
    throw_if_interrupted(with_commas(report.progress.done) + " of " +
                         with_commas(report.progress.total) + " problems done" +
                         (settings.out.empty()
                              ? ", nothing is kept: there is no --out"
                              : "; the same command with --resume goes on from there"));
  print(report, settings.out, settings.format, stdout_width());
  return 0;
}

}  // namespace crais
