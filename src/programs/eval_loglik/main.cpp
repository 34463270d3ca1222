#include <algorithm>

#include "programs/eval_loglik/commands.h"
#include "programs/run_program.h"
#include "util/error.h"

namespace crais {
namespace {

int evaluate(EvalSettings settings, const CommandLine& cli) {
  resolve_sharing(settings, cli, cli.given("shard"));
  return print_evaluation(settings);
}

/// Runs a command whose flags are those of an evaluation.
int run(const CommandLine& cli) {
  const std::string& first = cli.operands().front();
  if (first == "merge") return merge_evaluations(cli);
  if (first == "diagnose") return diagnose_evaluation(cli);
  if (first == "compare") return compare_evaluations(cli);
  for (const char* command : {"extend", "submit"})
    if (first == command)
      throw argument_error(first + " comes first, before any flag: eval-loglik " + first + " ...");
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '" + cli.operands()[1] +
                         "': one model is evaluated at a time; `eval-loglik compare` takes more");
  return evaluate(read_settings(cli), cli);
}

int eval_loglik(const std::string& called, const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words.front();
  if (first == "submit") return submit_evaluation({submit_synopsis(), words}, called);
  if (first == "extend") return extend_evaluation({extend_synopsis(), words});
  return run({eval_loglik_synopsis(), words});
}

}  // namespace
}  // namespace crais

int main(int argc, char** argv) {
  return crais::run_main("eval-loglik", [&] {
    return crais::eval_loglik(argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc});
  });
}
