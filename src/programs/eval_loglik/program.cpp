#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/eval_run.h"
#include "programs/run_program.h"
#include "util/error.h"

namespace crais {
namespace {

int evaluate(EvalSettings settings, const CommandLine& cli) {
  resolve_sharing(settings, cli, cli.given("shard"));
  if (const auto report = evaluate_model(settings)) print(*report, settings);
  return 0;
}

}  // namespace

int eval_loglik(const CommandLine& cli) {
  const std::string& first = cli.operands().front();
  if (first == "merge") return merge_evaluations(cli);
  if (first == "diagnose") return diagnose_evaluation(cli);
  if (first == "compare") return compare_evaluations(cli);
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '", cli.operands()[1], "': one model is evaluated at a time");
  return evaluate(read_settings(cli), cli);
}

}  // namespace crais
