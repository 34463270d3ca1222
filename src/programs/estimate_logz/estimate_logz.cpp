#include "programs/estimate_logz/estimate_logz.h"

#include <c10/core/GradMode.h>

#include <iostream>
#include <memory>

#include "programs/estimate_logz/logz_run.h"
#include "programs/estimate_logz/report.h"
#include "programs/estimate_logz/settings.h"
#include "programs/run_program.h"
#include "programs/sharing.h"
#include "report/table.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {

int estimate_logz(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    cli.allow_only({}, "list says which targets there are; the flag is of estimates");
    std::cout << list_targets(stdout_width());
    return 0;
  }
  LogzSettings settings = read_logz_settings(cli);
  resolve_sharing(settings, cli, /*is_shard=*/false);
  if (is_shared(settings) && !settings.particles_file.empty())
    throw argument_error(
        "--save-particles: workers that share chunks keep sums over particles, not the particles; "
        "--queue none does without the other workers");
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const LogzRun run(settings, named_target(settings));
  if (!settings.quiet) std::cerr << run.notice();
  return run_program(settings, {"estimate-logz", "problems", "log Z", !settings.quiet},
                     [&](RunObserver& observer) { return run.run(observer); });
}

}  // namespace crais
