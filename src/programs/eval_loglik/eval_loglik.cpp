#include "programs/eval_loglik/eval_loglik.h"

#include <c10/core/GradMode.h>

#include "programs/eval_loglik/compare.h"
#include "programs/eval_loglik/curve.h"
#include "programs/eval_loglik/diagnose.h"
#include "programs/eval_loglik/evaluate.h"
#include "programs/eval_loglik/merge.h"
#include "programs/sharing.h"
#include "report/table.h"
#include "util/error.h"
#include "util/parallel.h"

namespace crais {

namespace {

int evaluated(EvalSettings settings, const CommandLine& cli) {
  resolve_sharing(settings, cli, cli.given("shard"));
  if (const auto report = evaluate_model(settings); report && !report->is_elsewhere)
    print(*report, settings.out, settings.format, stdout_width());
  return 0;
}

}  // namespace

int evaluate_curve(const CommandLine& cli) {
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  return evaluated(read_curve(cli), cli);
}

int eval_loglik(const CommandLine& cli) {
  const std::string& first = cli.operands().front();
  if (first == "merge") return merge_evaluations(cli);
  if (first == "diagnose") return diagnose_evaluation(cli);
  if (first == "extend")
    throw argument_error("extend comes first: eval-loglik extend DIR --chains +N | --images +N");
  if (first == "curve") throw argument_error("curve comes first: eval-loglik curve MODEL");
  if (first == "submit")
    throw argument_error("submit comes first: eval-loglik submit slurm MODEL --out DIR --tasks N");
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  if (first == "compare") return compare_evaluations(cli);
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '" + cli.operands()[1] +
                         "': one model is evaluated at a time; `eval-loglik compare` takes more");
  return evaluated(read_settings(cli), cli);
}

}  // namespace crais
