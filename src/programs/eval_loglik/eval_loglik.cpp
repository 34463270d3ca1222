#include "programs/eval_loglik/eval_loglik.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <mutex>
#include <optional>

#include "cli/blas_check.h"
#include "evaluation/chunk_memory.h"
#include "evaluation/estimator.h"
#include "evaluation/result_store.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/images.h"
#include "programs/eval_loglik/merge.h"
#include "programs/eval_loglik/report.h"
#include "programs/eval_loglik/settings.h"
#include "report/progress.h"
#include "report/training_bar.h"
#include "targets/vae_posterior.h"
#include "util/error.h"
#include "util/format.h"
#include "util/interrupt.h"
#include "util/memory.h"
#include "util/parallel.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What decides the results, to the last bit on one kind of device.
json run_record(const EvalSettings& settings, const Checkpoint& checkpoint,
                const EvalImages& images) {
  return {{"program", "eval-loglik"},
          {"crais", crais_version()},
          {"libtorch", libtorch_version()},
          {"settings", deciding_settings(settings)},
          {"checkpoint",
           {{"sha256", checkpoint.sha256},
            {"pixels", checkpoint.vae.architecture.num_pixels()},
            {"latent", checkpoint.vae.architecture.latent},
            {"binarisation", checkpoint.info.binarisation},
            {"epochs", checkpoint.info.epochs}}},
          {"images",
           {{"count", images.size()},
            {"source", images.source == "simulated" ? "simulated" : "file"},
            {"file_md5", images.data_md5},
            {"binarisation", images.binarisation},
            {"binarisation_warning", images.warning},
            {"sha256", images.digest}}}};
}

class EvalRun {
 public:
  explicit EvalRun(EvalSettings settings)
      : settings_(std::move(settings)),
        checkpoint_(read_checkpoint(settings_.checkpoint)),
        vae_(checkpoint_.vae.to(settings_.device, settings_.dtype)),
        fused_(make_fused_decoder(vae_)),
        estimator_(settings_.estimator) {
    std::string notice;
    images_ = choose_images(settings_.images, checkpoint_, notice);
    chunks_ = {images_.size(), settings_.chunk};
    if (settings_.shard.count > chunks_.count())
      throw usage_error("--shard: there are only " + std::to_string(chunks_.count()) +
                        " chunks of --chunk " + std::to_string(settings_.chunk) + " images");
    if (estimator_.needs_exact_draws() && images_.source != "simulated")
      throw usage_error(
          "--method bidirectional needs --simulate N: its reverse chains start from an exact draw "
          "of the posterior, which only an image simulated from the model has. The gap on "
          "simulated "
          "images then certifies these settings for real ones");
    if (!notice.empty()) std::cerr << notice << "\n";
    if (!images_.warning.empty()) std::cerr << "WARNING: " << images_.warning << "\n";
  }

  int run() {
    if (settings_.dry_run) return describe();
    const auto start = Clock::now();
    install_interrupt_handler();
    const json record = run_record(settings_, checkpoint_, images_);
    if (!settings_.out.empty())
      store_.emplace(settings_.out, record, settings_.resume, settings_.overwrite);
    if (store_ && settings_.resume) results_.chunks = store_->read_chunks();
    results_.num_pixels = vae_.architecture.num_pixels();
    if (!fused_ && settings_.device.is_cpu() && !settings_.quiet) warn_of_slow_blas("eval-loglik");
    limit_threads();
    make_shared();
    evaluate_missing();

    const std::vector<LikelihoodSummary> methods = summarise(results_);
    if (store_) {
      json summary = summary_of(record, methods);
      summary["checkpoint"]["path"] = settings_.checkpoint;
      summary["images"]["source"] = images_.source;
      summary["settings"] = settings_.resolved;
      summary["shard"] = settings_.resolved["shard"];
      summary["device"] = settings_.device.str();
      summary["threads"] = threads_;
      summary["evaluator"] = evaluator();
      summary["peak_memory_bytes"] = peak_memory();
      summary["seconds"] = seconds_since(start);
      write_reports(store_->folder(), results_, summary);
    }
    print_results(methods, settings_.out);
    std::cout << "Evaluator " << evaluator() << " on " << settings_.device.str() << ".\n";
    return 0;
  }

 private:
  VaePosterior posterior_of(int64_t begin, int64_t end) const {
    const auto part = [&](const at::Tensor& all) {
      return all.defined() ? all.slice(0, begin, end).to(settings_.device, settings_.dtype) : all;
    };
    return {vae_, part(images_.pixels), part(images_.latents), fused_};
  }

  std::string evaluator() const { return fused_ ? fused_->name() : "aten"; }

  void limit_threads() {
    threads_ = settings_.device.is_cpu() ? resolve_threads(settings_.threads) : 1;
    if (!settings_.memory_limit || !settings_.device.is_cpu()) return;
    const int64_t problems = std::min(settings_.chunk, images_.size());
    const VaePosterior largest = posterior_of(0, problems);
    const ChunkShape shape{problems, estimator_.most_particles(problems, largest.dim()),
                           largest.dim(), settings_.dtype == at::kDouble ? 8 : 4,
                           largest.working_memory()};
    threads_ =
        threads_within(*settings_.memory_limit, peak_memory(), chunk_memory(shape), threads_);
  }

  int describe() const {
    const EstimatorSettings& e = settings_.estimator;
    std::cout << "Would evaluate " << with_commas(images_.size()) << " images (" << images_.source
              << ", " << images_.binarisation << ") in " << with_commas(chunks_.count())
              << " chunks of " << settings_.chunk << ", shard " << settings_.shard.index << " of "
              << settings_.shard.count << ", on " << settings_.device.str() << " with evaluator "
              << evaluator() << ".\n";
    for (const auto& method : e.methods)
      std::cout << "Method " << method << " from base " << e.base << ".\n";
    if (estimator_.anneals()) {
      std::cout << "Annealing: schedule " << e.schedule << ", path " << e.path << ", kernel "
                << e.kernel << ", " << e.chains << " chains";
      if (e.budget)
        std::cout << "; temperatures and chains as a budget of "
                  << with_commas(std::llround(*e.budget)) << " evaluations an image allows";
      else if (!estimator_.is_adaptive())
        std::cout << ", " << e.schedule_options.steps << " transitions, "
                  << with_commas(e.chains *
                                 (1 + e.schedule_options.steps * e.transition_options.num_leapfrog))
                  << " evaluations an image";
      std::cout << (estimator_.needs_pilot() ? "; a pilot tunes it first.\n" : "; no pilot.\n");
    }
    return 0;
  }

  void make_shared() {
    const auto stored = store_ ? store_->read_shared() : std::nullopt;
    const VaePosterior pilots =
        posterior_of(0, std::min(settings_.estimator.pilot_problems, images_.size()));
    if (stored)
      estimator_.set_shared(*stored);
    else
      estimator_.tune_shared(pilots, images_.size());
    // What methods have learned is not stored: they learn the same again, if there is a need.
    if (!stored || static_cast<int64_t>(results_.chunks.size()) < chunks_.count())
      estimator_.prepare(pilots,
                         training_bar("training", "no image is done yet", !settings_.quiet));
    results_.shared = estimator_.shared();
    if (store_ && !stored) store_->write_shared(results_.shared);
  }

  void evaluate_missing() {
    std::vector<int64_t> missing;
    int64_t images_before = 0, images_in_shard = 0;
    RunningMean running("log p");
    for (int64_t c = 0; c < chunks_.count(); ++c) {
      if (!settings_.shard.holds(c)) continue;
      const int64_t size = chunks_.end(c) - chunks_.begin(c);
      images_in_shard += size;
      if (const auto done = results_.chunks.find(c); done != results_.chunks.end()) {
        images_before += size;
        running.add(done->second);
      } else {
        missing.push_back(c);
      }
    }

    ProgressBarOptions options;
    options.label = "eval-loglik";
    options.total = images_in_shard;
    options.done = images_before;
    options.enabled = !settings_.quiet;
    ProgressBar progress(options);
    int64_t images_done = images_before;
    std::mutex mutex;
    parallel_for(
        static_cast<int64_t>(missing.size()), threads_,
        [&](int64_t i) {
          const c10::NoGradGuard no_grad;
          const int64_t c = missing[static_cast<size_t>(i)];
          ChunkResult result =
              estimator_.estimate(c, posterior_of(chunks_.begin(c), chunks_.end(c)));
          result.indices.assign(images_.indices.begin() + chunks_.begin(c),
                                images_.indices.begin() + chunks_.end(c));
          const std::lock_guard lock(mutex);
          if (store_) store_->write_chunk(result);
          images_done += chunks_.end(c) - chunks_.begin(c);
          progress.update(images_done, running.add(result));
          results_.chunks.emplace(c, std::move(result));
        },
        interrupted);
    progress.finish();
    if (images_done < images_in_shard)
      throw_if_interrupted(with_commas(images_done) + " of " + with_commas(images_in_shard) +
                           " images done" +
                           (store_ ? "; the same command with --resume goes on from there"
                                   : ", nothing kept: there is no --out"));
  }

  EvalSettings settings_;
  Checkpoint checkpoint_;
  Vae vae_;
  std::shared_ptr<const FusedDecoder> fused_;  // of vae_; null: ATen
  Estimator estimator_;
  EvalImages images_;
  Chunks chunks_{};
  int64_t threads_ = 1;
  std::optional<EvalStore> store_;
  EvalResults results_;
};

}  // namespace

int eval_loglik(const CommandLine& cli) {
  if (cli.operands().front() == "merge") return merge_evaluations(cli);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  return EvalRun(read_settings(cli)).run();
}

}  // namespace crais
