#include <c10/core/GradMode.h>

#include <iostream>

#include "programs/eval_loglik/commands.h"
#include "programs/run_program.h"
#include "util/parallel.h"

namespace crais {

std::optional<RunReport> evaluate_model(const EvalSettings& settings) {
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const EvalRun run(
      settings, open_model(settings.checkpoint, settings.script, settings.device, settings.dtype));
  std::cerr << run.notice();
  if (settings.dry_run) {
    std::cout << run.describe();
    return {};
  }
  return complete_run(settings, {"eval-loglik", "images", "log p", !settings.quiet},
                      [&](RunObserver& observer) { return run.run(observer); });
}

}  // namespace crais
