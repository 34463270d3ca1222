#include "programs/estimate_logz/estimate_logz.h"

#include <c10/core/GradMode.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "core/rng.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "io/json.h"
#include "programs/estimate_logz/expectations.h"
#include "programs/estimate_logz/particles_file.h"
#include "programs/estimate_logz/report.h"
#include "programs/estimate_logz/settings.h"
#include "report/estimates.h"
#include "report/run_progress.h"
#include "report/terminal.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::shared_ptr<const Target> make_target(const LogzSettings& settings) {
  return TargetRegistry::instance().make(
      "target", settings.target,
      {settings.problems, at::TensorOptions().device(settings.device).dtype(settings.dtype),
       settings.data_dir});
}

void require_exact_draws(const Target& target, const LogzSettings& settings) {
  at::Generator rng = make_generator(0, settings.device);
  if (!target.slice(0, 1)->exact_sample(1, rng))
    throw argument_error(
        "--method bidirectional: its reverse chains start from exact draws of the target, and "
        "there is no way to draw from " +
        settings.target);
}

/// What decides the results. A value of the density stands for what the target has read from files.
json run_record(const LogzSettings& settings, const Target& target) {
  return {{"program", "estimate-logz"},
          {"target", settings.target},
          {"dim", target.dim()},
          {"log_density", json_number(probe(target))},
          {"settings", deciding_settings(settings)}};
}

json summary_of(const json& run, const LogzSettings& settings, const LogzResults& results,
                const std::vector<LogzSummary>& methods, double seconds) {
  json summary = run;
  summary["crais"] = crais_version();
  summary["libtorch"] = libtorch_version();
  summary["true_log_normalizer"] = results.truth ? json_number(*results.truth) : json();
  summary["settings"] = settings.resolved;
  summary["device"] = settings.device.str();
  summary["threads"] = resolve_threads(settings.threads);
  summary["seconds"] = seconds;
  summary["results"] = json::array();
  for (const LogzSummary& method : methods) summary["results"].push_back(to_json(method));
  return summary;
}

RunResults run(const LogzSettings& settings, const Estimator& estimator,
               const std::shared_ptr<const Target>& target, const ResultStore* store) {
  RunProgress progress(
      {"estimate-logz", "problems", "log Z", "no problem is done yet", !settings.quiet});
  const RunOptions options{settings.device.is_cpu() ? settings.threads : 1, {}, &progress, store};
  RunResults results = run_problems(ProblemSource::of(target), estimator, options);
  progress.finish();
  const auto [done, total] =
      progressed(results, {settings.problems, settings.estimator.chunk}, options.shard);
  if (done < total)
    throw_if_interrupted(with_commas(done) + " of " + with_commas(total) + " problems done" +
                         (store ? "; the same command with --resume goes on from there"
                                : ", nothing is kept: there is no --out"));
  return results;
}

}  // namespace

int estimate_logz(const CommandLine& cli) {
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    std::cout << list_targets(stdout_width());
    return 0;
  }
  const auto start = Clock::now();
  const LogzSettings settings = read_logz_settings(cli);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const Estimator estimator(settings.estimator);
  const std::shared_ptr<const Target> target = make_target(settings);
  if (estimator.needs_exact_draws()) require_exact_draws(*target, settings);
  json record = run_record(settings, *target);
  std::optional<ResultStore> store;
  if (!settings.out.empty()) {
    store.emplace(settings.out, record, settings.store);
    record = store->run();
  }
  check_expectations(settings.estimator.expectations, *target);
  if (!settings.particles_file.empty())  // before the work, lest it be in vain
    make_output_folder(std::filesystem::absolute(settings.particles_file).parent_path());
  if (!settings.particles_file.empty() && !settings.quiet)
    std::cerr << particles_size(settings, *target) << "\n";
  install_interrupt_handler();

  LogzResults results{run(settings, estimator, target, store ? &*store : nullptr),
                      settings.target,
                      target->dim(),
                      {}};
  if (const auto truth = target->true_log_normalizer()) results.truth = (*truth)[0].item<double>();
  const std::vector<LogzSummary> methods = summarise(results);
  const std::vector<TargetExpectation> expectations =
      expectations_of(results, settings.estimator.expectations, *target);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  json summary = summary_of(record, settings, results, methods, seconds);
  if (!expectations.empty()) summary["expectations"] = to_json(expectations);
  if (store) {
    const std::filesystem::path& folder = store->folder();
    write_file_atomic(folder / "per_problem.csv",
                      estimates_csv(results, "problem", "log_normalizer", results.truth));
    write_file_atomic(folder / "schedule.csv", schedule_csv(results, "problem"));
    if (!expectations.empty())
      write_file_atomic(folder / "expectations.csv", expectations_csv(expectations));
    write_file_atomic(folder / "summary.json", to_text(summary));
  }
  if (!settings.particles_file.empty()) write_particles(settings, results);
  print_results(results, methods, expectations, summary, settings.out, settings.format,
                stdout_width());
  return 0;
}

}  // namespace crais
