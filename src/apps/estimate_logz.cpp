#include "apps/estimate_logz.h"

#include <c10/core/GradMode.h>

#include <chrono>
#include <filesystem>
#include <iostream>

#include "apps/estimate_logz_report.h"
#include "apps/estimate_logz_run.h"
#include "apps/estimate_logz_settings.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/version.h"
#include "report/json.h"

namespace crais {
namespace {

using nlohmann::json;

void claim_folder(const LogzSettings& settings) {
  if (settings.out.empty()) return;
  make_output_folder(settings.out);
  if (!settings.overwrite && std::filesystem::exists(settings.out + "/summary.json"))
    throw usage_error(settings.out + ": holds results already; --overwrite replaces them");
}

json summary_of(const LogzSettings& settings, const LogzResults& results,
                const std::vector<LogzSummary>& methods, double seconds) {
  json summary = {{"program", "estimate-logz"},
                  {"crais", crais_version()},
                  {"libtorch", libtorch_version()},
                  {"target", settings.target},
                  {"dim", results.dim},
                  {"true_log_normalizer", results.truth ? json_number(*results.truth) : json()},
                  {"settings", settings.resolved},
                  {"device", settings.device.str()},
                  {"threads", resolve_threads(settings.threads)},
                  {"seconds", seconds},
                  {"results", json::array()}};
  for (const LogzSummary& method : methods) summary["results"].push_back(to_json(method));
  return summary;
}

}  // namespace

int estimate_logz(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    std::cout << list_targets();
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const LogzSettings settings = read_logz_settings(cli);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  LogzRun run(settings);
  claim_folder(settings);
  install_interrupt_handler();
  const LogzResults results = run.run();
  const std::vector<LogzSummary> methods = summarise(results);
  if (!settings.out.empty()) {
    const std::filesystem::path folder = settings.out;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    write_file_atomic(folder / "per_problem.csv", per_problem_csv(results, settings.problems));
    write_file_atomic(folder / "schedule.csv", schedule_csv(results));
    write_file_atomic(folder / "summary.json",
                      to_text(summary_of(settings, results, methods, took.count())));
  }
  print_results(settings.target, results, methods, settings.out);
  return 0;
}

}  // namespace crais
