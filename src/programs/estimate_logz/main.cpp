#include <c10/core/GradMode.h>

#include <iostream>

#include "programs/estimate_logz/logz_run.h"
#include "programs/estimate_logz/particles_file.h"
#include "programs/run_program.h"
#include "report/table.h"
#include "util/error.h"
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

int estimate_logz(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    cli.allow_only({}, "list only prints the targets; the flag applies to estimates");
    list_targets();
    return 0;
  }
  LogzSettings settings = read_logz_settings(cli);
  resolve_sharing(settings, cli, /*is_shard=*/false);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const std::shared_ptr<const Target> target = named_target(settings);
  if (settings.part && !settings.particles_file.empty())
    throw argument_error(
        "--save-particles: processes under torchrun share a folder, which keeps sums over "
        "particles, not the particles; run it without torchrun");
  check_particles_file(settings);
  const RunReport report =
      complete_run(settings, {"estimate-logz", "problems", "log Z", !settings.quiet},
                   [&](RunObserver& observer) { return run_logz(settings, target, observer); });
  if (!settings.particles_file.empty()) write_particles(settings, report.results);
  print(report, settings);
  return 0;
}

}  // namespace
}  // namespace crais

int main(int argc, char** argv) {
  return crais::run_main("estimate-logz", [&] {
    return crais::estimate_logz(crais::CommandLine(crais::estimate_logz_synopsis(), argc, argv));
  });
}
