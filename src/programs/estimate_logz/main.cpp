#include <c10/core/GradMode.h>

#include <iostream>

#include "core/target.h"
#include "programs/estimate_logz/logz_run.h"
#include "report/table.h"
#include "util/parallel.h"

namespace crais {
namespace {

/// Lists every target with its parameters and its description.
void list_targets() {
  Table table;
  for (const auto& [name, entry] : TargetRegistry::instance().entries())
    table.add_row({{"target", entry.usage}, {"density", entry.summary}});
  std::cout << table.text(stdout_width());
}

int list_or_estimate(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    cli.allow_only({}, "list only prints the targets; the flag applies to estimates");
    list_targets();
    return 0;
  }
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  estimate_logz(cli, named_target);
  return 0;
}

}  // namespace
}  // namespace crais

int main(int argc, char** argv) {
  return crais::run_main("estimate-logz", [&] {
    return crais::list_or_estimate(crais::CommandLine(crais::estimate_logz_synopsis(), argc, argv));
  });
}
