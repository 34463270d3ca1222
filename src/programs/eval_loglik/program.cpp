#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/eval_run.h"
#include "programs/run_program.h"
#include "util/error.h"

namespace crais {

int eval_loglik(int argc, char** argv) {
  const CommandLine cli(eval_loglik_synopsis(), argc, argv);
  const std::string& first = cli.operands().front();
  if (first == "merge") return merge_evaluations(cli);
  if (first == "diagnose") return diagnose_evaluation(cli);
  if (first == "compare") return compare_evaluations(cli);
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '", cli.operands()[1], "': one model is evaluated at a time");
  EvalSettings settings = read_settings(cli);
  resolve_sharing(settings, cli, cli.given("shard"));
  if (auto report = evaluate_model(settings))
    print(std::move(*report), settings.out, settings.format);
  return 0;
}

}  // namespace crais
