#include "programs/estimate_logz/logz_run.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/rng.h"
#include "evaluation/kept_particles.h"
#include "evaluation/result_store.h"
#include "io/json.h"
#include "programs/estimate_logz/expectations.h"
#include "programs/estimate_logz/particles_file.h"
#include "programs/estimate_logz/report.h"
#include "programs/plane.h"
#include "programs/sharing.h"
#include "util/error.h"
#include "util/files.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

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

/// Particles are kept for whoever asks for samples, and for the page of a run that has a folder,
/// which draws those in the plane; as far as methods and options leave some.
LogzSettings keeping_particles(LogzSettings settings, const Target& target) {
  constexpr double kMostBytes = 1 << 28, kLeastCost = 32;  // bytes; evaluations of a particle
  EstimateOptions& o = settings.estimator;
  const bool are_wanted = settings.wants_samples || (target.dim() == 2 && !settings.out.empty());
  const double particles = o.budget ? *o.budget / kLeastCost : static_cast<double>(o.chains);
  const double bytes = 8 * particles * static_cast<double>(settings.problems * (target.dim() + 1));
  if (are_wanted && bytes <= kMostBytes && !o.target_error && !o.mean_error &&
      o.methods == std::vector<std::string>{"ais"})
    o.keep_particles = true;
  return settings;
}

/// Of all problems together, whose weights all have the mean Z; nothing where a chunk was read from
/// a file, which keeps no particles.
std::optional<Scatter> cloud_of(const LogzSettings& settings, const RunResults& results,
                                const Target& target) {
  constexpr int64_t kDrawn = 500;
  if (target.dim() != 2) return {};
  const auto kept = kept_particles(results);
  if (!kept) return {};
  const at::Tensor some =
      thinned(kept->z.flatten(0, 1), kept->log_w.flatten(), kDrawn, settings.estimator.seed);
  if (!some.isfinite().all().item<bool>()) return {};
  const Window window = window_around(some);
  Scatter cloud{settings.target, window, contours_of(target, window), {}};
  cloud.panels.push_back({"particles", to_column(some.select(1, 0)), to_column(some.select(1, 1))});
  return cloud;
}

}  // namespace

std::shared_ptr<const Target> named_target(const LogzSettings& settings) {
  if (settings.target.find(".py:") != std::string::npos)
    throw argument_error(settings.target +
                         ": a function of Python is for the command of the Python package, which "
                         "`pip install .` puts in place of this one");
  return TargetRegistry::instance().make(
      "target", settings.target,
      {settings.problems, at::TensorOptions().device(settings.device).dtype(settings.dtype),
       settings.data_dir});
}

LogzRun::LogzRun(LogzSettings settings, std::shared_ptr<const Target> target)
    : settings_(keeping_particles(std::move(settings), *target)),
      target_(std::move(target)),
      estimator_(settings_.estimator) {
  if (estimator_.needs_exact_draws()) require_exact_draws(*target_, settings_);
  check_expectations(settings_.estimator.expectations, *target_);
}

std::string LogzRun::notice() const {
  return settings_.particles_file.empty() ? "" : particles_size(settings_, *target_) + "\n";
}

RunReport LogzRun::run(RunObserver& observer) const {
  const auto start = Clock::now();
  json run = run_record(settings_, *target_);
  std::optional<ResultStore> store;
  if (!settings_.out.empty()) {
    store.emplace(settings_.out, run, settings_.store);
    run = store->run();
  }
  if (!settings_.particles_file.empty())  // before the work, lest it be in vain
    make_output_folder(std::filesystem::absolute(settings_.particles_file).parent_path());
  const std::unique_ptr<WorkQueue> queue = open_queue(settings_, store);
  const RunOptions options{settings_.device.is_cpu() ? settings_.threads : 1,
                           {},
                           &observer,
                           store ? &*store : nullptr,
                           queue.get()};
  LogzResults results{run_problems(ProblemSource::of(target_), estimator_, options),
                      settings_.target,
                      target_->dim(),
                      {},
                      {},
                      settings_.notes};
  const Chunks chunks{settings_.problems, settings_.estimator.chunk};
  Progressed progress = progressed(results, chunks, options.shard);
  const bool is_elsewhere = queue && progress.done < progress.total;
  if (is_elsewhere) progress = progressed(store->finished(), chunks);
  if (progress.done == 0 || is_elsewhere)
    return unreported(std::move(results), progress, std::move(run), is_elsewhere);

  if (const auto truth = target_->true_log_normalizer()) results.truth = (*truth)[0].item<double>();
  const std::vector<TargetExpectation> expectations =
      expectations_of(results, settings_.estimator.expectations, *target_);
  json summary = run;
  summary["crais"] = crais_version();
  summary["libtorch"] = libtorch_version();
  summary["settings"] = settings_.resolved;
  summary["device"] = settings_.device.str();
  summary["threads"] = resolve_threads(settings_.threads);
  summary["seconds"] = std::chrono::duration<double>(Clock::now() - start).count();
  if (!settings_.particles_file.empty() && progress.done == progress.total)
    write_particles(settings_, results);
  if (settings_.in_memory) summary["in_memory"] = true;
  if (store || (settings_.wants_samples && !settings_.in_memory))  // a function may be dear
    results.cloud = cloud_of(settings_, results, *target_);
  RunReport report = report_of(std::move(results), expectations, std::move(summary));
  report.progress = progress;
  report.run = std::move(run);
  if (store && report.is_complete()) write_files(report, store->folder());
  return report;
}

}  // namespace crais
