#include "programs/estimate_logz/estimate_logz.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/rng.h"
#include "evaluation/chunks.h"
#include "evaluation/estimator.h"
#include "io/json.h"
#include "programs/estimate_logz/report.h"
#include "programs/estimate_logz/settings.h"
#include "report/estimates.h"
#include "report/progress.h"
#include "report/training_bar.h"
#include "util/error.h"
#include "util/files.h"
#include "util/interrupt.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Replicates of one target, estimated in chunks.
class LogzRun {
 public:
  explicit LogzRun(LogzSettings settings)
      : settings_(std::move(settings)),
        estimator_(settings_.estimator),
        target_(TargetRegistry::instance().make(
            "target", settings_.target,
            {settings_.problems,
             at::TensorOptions().device(settings_.device).dtype(settings_.dtype),
             settings_.data_dir})),
        chunks_{settings_.problems, settings_.chunk} {
    results_.target = settings_.target;
    results_.dim = target_->dim();
    if (const auto truth = target_->true_log_normalizer())
      results_.truth = (*truth)[0].item<double>();
    at::Generator rng = make_generator(0, settings_.device);
    if (estimator_.needs_exact_draws() && !target_->exact_sample(1, rng))
      throw usage_error(
          "--method bidirectional: its reverse chains start from exact draws of the "
          "target, and there is no way to draw from " +
          settings_.target);
  }

  LogzResults run() {
    const c10::NoGradGuard no_grad;
    const auto pilots = part(0, std::min(settings_.estimator.pilot_problems, settings_.problems));
    estimator_.tune_shared(*pilots, settings_.problems);
    estimator_.prepare(*pilots, training_bar("training", "nothing is kept", !settings_.quiet));
    results_.shared = estimator_.shared();
    ProgressBarOptions options;
    options.label = "estimate-logz";
    options.unit = "problems";
    options.total = settings_.problems;
    options.enabled = !settings_.quiet;
    ProgressBar progress(options);
    RunningMean running("log Z");
    std::mutex mutex;
    parallel_for(
        chunks_.count(), settings_.device.is_cpu() ? settings_.threads : 1,
        [&](int64_t c) {
          const c10::NoGradGuard no_grad_here;
          const int64_t begin = chunks_.begin(c), end = chunks_.end(c);
          ChunkResult result = estimator_.estimate(c, *part(begin, end));
          result.indices.resize(static_cast<size_t>(end - begin));
          std::iota(result.indices.begin(), result.indices.end(), begin);
          const std::lock_guard lock(mutex);
          progress.advance(end - begin);
          progress.set_status(running.add(result));
          results_.chunks.emplace(c, std::move(result));
        },
        interrupted);
    progress.finish();
    throw_if_interrupted("nothing is kept");
    return results_;
  }

 private:
  std::unique_ptr<Target> part(int64_t begin, int64_t end) const {
    return target_->slice(begin, end);
  }

  LogzSettings settings_;
  Estimator estimator_;
  std::unique_ptr<Target> target_;
  Chunks chunks_;
  LogzResults results_;
};

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
  const auto start = Clock::now();
  const LogzSettings settings = read_logz_settings(cli);
  use_one_thread_per_operation();
  LogzRun run(settings);
  claim_folder(settings);
  install_interrupt_handler();
  const LogzResults results = run.run();
  const std::vector<LogzSummary> methods = summarise(results);
  if (!settings.out.empty()) {
    const std::filesystem::path folder = settings.out;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    write_file_atomic(folder / "per_problem.csv",
                      estimates_csv(results, "problem", "log_normalizer", results.truth));
    write_file_atomic(folder / "schedule.csv", schedule_csv(results, "problem"));
    write_file_atomic(folder / "summary.json",
                      to_text(summary_of(settings, results, methods, seconds)));
  }
  print_results(results, methods, settings.out);
  return 0;
}

}  // namespace crais
