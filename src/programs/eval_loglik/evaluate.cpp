#include "programs/eval_loglik/evaluate.h"

#include <iostream>
#include <memory>

#include "programs/eval_loglik/eval_run.h"
#include "programs/run_program.h"

namespace crais {

std::optional<RunReport> evaluate_model(const EvalSettings& settings,
                                        const std::function<void(const EvalRun&)>& check) {
  std::string understood;  // how a file of another program was read
  const EvalModel model = open_model(settings.checkpoint, settings.foreign, settings.device,
                                     settings.dtype, understood);
  const EvalRun run(settings, model);
  if (check) check(run);
  if (!settings.quiet && !settings.dry_run) std::cerr << understood;
  std::cerr << run.notice();
  if (settings.dry_run) {
    std::cout << understood << run.describe();
    return {};
  }
  return complete_run(settings, {"eval-loglik", "images", "log p", !settings.quiet},
                      [&](RunObserver& observer) { return run.run(observer); });
}

}  // namespace crais
