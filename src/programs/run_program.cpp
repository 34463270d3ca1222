#include "programs/run_program.h"

#include <torch/cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/program.h"
#include "core/limits.h"
#include "core/spec.h"
#include "report/table.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point kBegan = Clock::now();  // initialised when the program is loaded

/// A number that torchrun has set; nothing if it has not.
std::optional<int64_t> torchrun_number(const char* name, int64_t least) {
  const char* text = std::getenv(name);
  if (!text) return {};
  const std::string what = std::string("under torchrun: ") + name;
  const int64_t value = parse_integer(text, what);
  check_range(Range::between(static_cast<double>(least), kMostCount), value, what);
  return value;
}

/// The part of this process; nothing if torchrun has not started it.
std::optional<Shard> torchrun_part() {
  const auto rank = torchrun_number("RANK", 0), count = torchrun_number("WORLD_SIZE", 1);
  if (!rank && !count) return {};
  if (!rank || !count)
    throw argument_error(
        "under torchrun: ", (rank ? "RANK is set, but WORLD_SIZE" : "WORLD_SIZE is set, but RANK"),
        " is not");
  if (*rank >= *count)
    throw argument_error("under torchrun: RANK is ", *rank, ", but WORLD_SIZE is ", *count,
                         ": the first is 0");
  return Shard{*rank + 1, *count};
}

/// Divides cores and GPUs between torchrun's processes on one machine, which all ask for all of
/// them.
void share_machine(RunSettings& settings, const CommandLine& cli) {
  const int64_t processes = torchrun_number("LOCAL_WORLD_SIZE", 1).value_or(1);
  const int64_t index = torchrun_number("LOCAL_RANK", 0).value_or(0);
  if (settings.threads == 0)
    settings.threads = std::max<int64_t>(1, resolve_threads(0) / processes);
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
  const bool is_plain = settings.part.has_value();  // the same command resumes
  if (settings.out.empty()) throw_if_interrupted(done + ", nothing is kept: there is no --out");
  if (limit.is_over() && !limit.has_advanced())
    throw Error(ErrorKind::kInterrupted, "time is up before the first chunk ended; ", done, "; ",
                (is_plain ? "a" : "--resume with a"), " longer --max-time continues");
  const std::string advice =
      done + "; the same command" + (is_plain ? "" : " with --resume") + " goes on from there";
  if (limit.is_over()) throw Error(ErrorKind::kInterrupted, "time is up; ", advice);
  throw_if_interrupted(advice);
}

}  // namespace

double seconds_of_process() { return std::chrono::duration<double>(Clock::now() - kBegan).count(); }

TimeLimit::TimeLimit(RunObserver& observer, std::optional<double> limit,
                     std::function<double()> elapsed)
    : observer_(observer), limit_(limit), elapsed_(std::move(elapsed)) {}

void TimeLimit::begin(int64_t done, int64_t total) { observer_.begin(done, total); }

void TimeLimit::chunk(const ChunkResult& result) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto started = begun_.find(std::this_thread::get_id()); started != begun_.end()) {
      longest_ = std::max(longest_, elapsed_() - started->second);
      has_advanced_ = true;
    }
  }
  observer_.chunk(result);
}

bool TimeLimit::stop() {
  if (observer_.stop()) return true;
  const double now = elapsed_();
  const std::lock_guard lock(mutex_);
  if (limit_ && now + longest_ >= *limit_) is_over_ = true;
  begun_[std::this_thread::get_id()] = now;
  return is_over_;
}

bool TimeLimit::is_over() const {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

bool TimeLimit::has_advanced() const {
  const std::lock_guard lock(mutex_);
  return has_advanced_;
}

void resolve_sharing(RunSettings& settings, const CommandLine& cli, bool is_shard) {
  const std::optional<Shard> part = torchrun_part();
  if (!part || is_shard) return;
  if (settings.out.empty())
    throw argument_error(
        "under torchrun, processes share a folder: give --out DIR; without RANK and WORLD_SIZE "
        "each process has a run of its own");
  if (settings.store.overwrite)
    throw argument_error(
        "under torchrun, processes that share a folder cannot use --overwrite: remove ",
        settings.out, " first, or choose another");
  settings.part = part;
  settings.store.resume = settings.store.shared = true;
  share_machine(settings, cli);
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
  const EstimateOptions& options = estimator.options();
  const Chunks chunks = problems.chunks_of(options.chunk);
  const int64_t threads = settings.device.is_cpu() ? resolve_threads(settings.threads) : 1;
  const Shard part = settings.part.value_or(shard);
  RunResults results =
      run_problems(problems, estimator, {threads, part, &observer, store ? &*store : nullptr});
  Progressed progress = progressed(results, chunks, part);
  lift_deadline();

  RunReport report;
  std::shared_ptr<const void> claim;  // to the files of a shared folder
  if (settings.part && progress.done == progress.total) {
    const int64_t missing = chunks.count() - static_cast<int64_t>(store->finished().size());
    if (missing > 0) {
      report.elsewhere = "part " + std::to_string(part.index) + " of " +
                         std::to_string(part.count) + " is done; " + with_commas(missing) + " of " +
                         with_commas(chunks.count()) + " chunks are still missing in " +
                         settings.out + ": other processes compute them, or a restart does";
    } else if (!(claim = store->claim_reports())) {
      report.elsewhere =
          "all chunks are done; another process writes the report in " + settings.out;
    } else {
      results.chunks =
          store->read_chunks({chunks, options.methods, options.repeats, problems.indices});
      separate_control(chunks, results);
      progress = progressed(results, chunks, {});
    }
  }
  if (progress.done == 0 || !report.elsewhere.empty()) {
    report.results = std::move(results);
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
  if (store && !report.files.empty() && report.is_complete()) write_files(report, store->folder());
  return report;
}

RunReport complete_run(const RunSettings& settings, const ProgressOptions& shown,
                       const std::function<RunReport(RunObserver&)>& run) {
  install_interrupt_handler();
  ProgressOptions line = shown;
  line.enabled &= !settings.part;  // processes would overwrite each other's lines
  ProgressLine progress(line);
  TimeLimit limit(progress, settings.max_time);
  RunReport report = run(limit);
  progress.finish();
  if (!report.is_complete()) throw_of_stopped(report.progress, limit, shown.unit, settings);
  if (!report.elsewhere.empty() && !settings.quiet)
    std::cerr << shown.label << ": " << report.elsewhere << "\n";
  return report;
}

void print(RunReport report, const std::string& folder, const std::string& format) {
  if (!report.elsewhere.empty()) return;
  report.text = [text = report.text, program = report.run.value("program", "")](int width) {
    return with_flags(program, text(width));
  };
  print(report, folder, format, stdout_width());
}

}  // namespace crais
