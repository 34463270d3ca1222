#include "programs/run_program.h"

#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include "core/spec.h"
#include "programs/time_limit.h"
#include "report/table.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

/// Divides cores and GPUs between torchrun's workers on one machine, which all ask for all of them.
void share_machine(RunSettings& settings, const CommandLine& cli, const Environment& variables) {
  const auto number = [&](const char* name, int64_t least) {
    return std::max(least, parse_integer(variables(name).value_or("0"), name));
  };
  const int64_t workers = number("LOCAL_WORLD_SIZE", 1), index = number("LOCAL_RANK", 0);
  if (settings.threads == 0) settings.threads = std::max<int64_t>(1, resolve_threads(0) / workers);
  const std::string device = cli.text("device");
  if (settings.device.is_cuda() && (device == "auto" || device == "cuda"))
    settings.device = at::Device(
        at::kCUDA,
        static_cast<at::DeviceIndex>(index % static_cast<int64_t>(torch::cuda::device_count())));
}

/// Throws for a run that time or a signal stopped; the error says what is finished and how to
/// continue.
void throw_of_stopped(const Progressed& progress, const TimeLimit& limit, const std::string& unit,
                      const RunSettings& settings) {
  const std::string done =
      with_commas(progress.done) + " of " + with_commas(progress.total) + " " + unit + " done";
  const bool is_plain = settings.is_shared || settings.store.extend;  // --resume is implied
  if (settings.out.empty()) throw_if_interrupted(done + ", nothing is kept: there is no --out");
  if (limit.is_over() && !limit.has_advanced())
    throw Error(ErrorKind::kInterrupted, "time is up before the first chunk ended; " + done + "; " +
                                             (is_plain ? "a" : "--resume with a") +
                                             " longer --max-time continues");
  const std::string advice =
      done + "; the same command" + (is_plain ? "" : " with --resume") + " goes on from there";
  if (limit.is_over()) throw Error(ErrorKind::kInterrupted, "time is up; " + advice);
  throw_if_interrupted(advice);
}

/// The queue of a run in this store. Null if nothing is shared, or if the other workers have
/// finished the run and left. Throws Error as claims do.
std::unique_ptr<WorkQueue> open_queue(const RunSettings& settings,
                                      const std::optional<ResultStore>& store,
                                      const Chunks& chunks) {
  if (!settings.is_shared) return nullptr;
  const std::chrono::seconds lease(settings.lease);
  try {
    return std::make_unique<WorkQueue>(
        store_claims(store_address("under torchrun"), store->fingerprint(), lease), lease);
  } catch (const Error&) {
    const Progressed progress = progressed(store->finished(), chunks);
    if (store->has_report() && progress.done == progress.total) return nullptr;
    throw;
  }
}

}  // namespace

void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard,
                     const Environment& variables) {
  const std::string what = "under torchrun", otherwise = "; --queue none does without the others";
  settings.is_shared =
      cli.text("queue") == "auto" && !is_shard && torchrun_rank(what, variables).has_value();
  if (!settings.is_shared) {
    cli.refuse_idle("lease", "without a queue of workers, as under torchrun");
    return;
  }
  if (settings.out.empty())
    throw argument_error(what + " workers share a folder: give --out DIR" + otherwise);
  if (settings.store.overwrite)
    throw argument_error(what + " workers that share a folder cannot use --overwrite: remove " +
                         settings.out + " first, or choose another" + otherwise);
  settings.store.resume = true;
  store_address(what, variables);
  share_machine(settings, cli, variables);
}

RunReport run_in_folder(
    const RunSettings& settings, nlohmann::json record, const ProblemSource& problems,
    const Estimator& estimator, const Shard& shard, RunObserver& observer,
    const std::function<RunReport(RunResults results, nlohmann::json summary)>& report_of) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<ResultStore> store;
  if (!settings.out.empty()) {
    store.emplace(settings.out, record, settings.store);
    record = store->run();
  }
  const Chunks chunks{problems.count, estimator.options().chunk};
  const std::unique_ptr<WorkQueue> queue = open_queue(settings, store, chunks);
  if (settings.is_shared && !queue) {
    RunReport report;
    report.is_elsewhere = true;
    report.progress = {problems.count, problems.count};
    report.run = std::move(record);
    return report;
  }
  const int64_t threads = settings.device.is_cpu() ? resolve_threads(settings.threads) : 1;
  RunResults results =
      run_problems(problems, estimator,
                   {threads, shard, &observer, store ? &*store : nullptr, queue.get(),
                    settings.earlier ? &settings.earlier->results : nullptr});
  Progressed progress = progressed(results, chunks, shard);
  const bool is_elsewhere = queue && progress.done < progress.total;
  if (is_elsewhere) progress = progressed(store->finished(), chunks);

  RunReport report;
  if (progress.done == 0 || is_elsewhere) {
    report.results = std::move(results);
    report.is_elsewhere = is_elsewhere && progress.done == progress.total;
  } else {
    nlohmann::json summary = record;
    summary["crais"] = crais_version();
    summary["libtorch"] = libtorch_version();
    summary["settings"] = settings.resolved;
    summary["device"] = settings.device.str();
    summary["threads"] = threads;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    summary["seconds"] = seconds.count();
    if (settings.in_memory) summary["in_memory"] = true;
    report = report_of(std::move(results), std::move(summary));
  }
  report.progress = progress;
  report.run = std::move(record);
  if (store && !report.files.empty() && report.is_complete()) {
    write_files(report, store->folder());
    store->replace_earlier();
  }
  return report;
}

RunReport complete_run(const RunSettings& settings, const RunProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run) {
  install_interrupt_handler();
  RunProgressOptions line = shown;
  line.enabled &= !settings.is_shared;  // workers would overwrite each other's lines
  RunProgress progress(line);
  TimeLimit limit(progress, settings.max_time);
  RunReport report = run(limit);
  progress.finish();
  if (!report.is_complete()) throw_of_stopped(report.progress, limit, shown.unit, settings);
  if (report.is_elsewhere && !settings.quiet)
    std::cerr << shown.program << ": all " << with_commas(report.progress.total) << " "
              << shown.unit << " are done; another worker has written the report in "
              << settings.out << "\n";
  return report;
}

void print(const RunReport& report, const RunSettings& settings) {
  if (!report.is_elsewhere) print(report, settings.out, settings.format, stdout_width());
}

}  // namespace crais
