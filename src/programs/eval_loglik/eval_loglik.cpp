#include "programs/eval_loglik/eval_loglik.h"

#include <c10/core/GradMode.h>

#include <iostream>

#include "cli/blas_check.h"
#include "programs/eval_loglik/eval_run.h"
#include "programs/eval_loglik/merge.h"
#include "programs/run_program.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {

int eval_loglik(const CommandLine& cli) {
  if (cli.operands().front() == "merge") return merge_evaluations(cli);
  if (cli.operands().front() == "submit")
    throw argument_error("submit comes first: eval-loglik submit slurm MODEL --out DIR --tasks N");
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const EvalSettings settings = read_settings(cli);
  std::string understood;  // how a state_dict was read
  const std::shared_ptr<const EvalModel> model = open_model(
      settings.checkpoint, settings.state_dict, settings.device, settings.dtype, understood);
  const EvalRun run(settings, model);
  if (!settings.quiet && !settings.dry_run) std::cerr << understood;
  std::cerr << run.notice();
  if (settings.dry_run) {
    std::cout << understood << run.describe();
    return 0;
  }
  if (model->needs_blas() && settings.device.is_cpu() && !settings.quiet)
    warn_of_slow_blas("eval-loglik");
  return run_program(settings,
                     {"eval-loglik", "images", "log p", "no image is done yet", !settings.quiet},
                     [&](RunObserver& observer) { return run.run(observer); });
}

}  // namespace crais
