#include "programs/eval_loglik/eval_loglik.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <optional>

#include "cli/blas_check.h"
#include "evaluation/chunk_memory.h"
#include "evaluation/result_store.h"
#include "evaluation/run_problems.h"
#include "programs/eval_loglik/images.h"
#include "programs/eval_loglik/merge.h"
#include "programs/eval_loglik/model.h"
#include "programs/eval_loglik/report.h"
#include "programs/eval_loglik/settings.h"
#include "report/run_progress.h"
#include "report/terminal.h"
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

/// A density of x = stored / S is one of stored numbers less log2 S bits each; probabilities of
/// 8-bit values are what they are, and so are those of binary pixels.
double bits_offset(const ModelDescription& model, const EvalImages& images) {
  const bool is_binary = model.likelihood == "bernoulli";
  return model.is_mass || is_binary ? 0.0 : std::log2(images.scale);
}

/// What decides the results, to the last bit on one kind of device.
json run_record(const EvalSettings& settings, const EvalModel& model, const EvalImages& images,
                const EvalImages& training) {
  json record = {{"program", "eval-loglik"},
                 {"settings", deciding_settings(settings)},
                 {"images",
                  {{"count", images.size()},
                   {"source", images.source == "simulated" ? "simulated" : "file"},
                   {"file_md5", images.data_md5},
                   {"binarisation", images.binarisation},
                   {"binarisation_warning", images.warning},
                   {"dequantisation", images.dequantisation},
                   {"scale", images.scale},
                   {"values", model.description().num_values()},
                   {"bits_offset", bits_offset(model.description(), images)},
                   {"sha256", images.digest}}}};
  const auto [key, identity] = model.record();
  record[key] = identity;
  if (training.size() > 0)
    record["training_images"] = {{"count", training.size()}, {"sha256", training.digest}};
  return record;
}

class EvalRun {
 public:
  explicit EvalRun(EvalSettings settings)
      : settings_(std::move(settings)),
        model_(open_model(settings_.checkpoint, settings_.state_dict, settings_.device,
                          settings_.dtype, understood_)),
        estimator_(settings_.estimator) {
    std::string notice;
    images_ = choose_images(settings_.images, *model_, notice);
    if (estimator_.learns())
      training_images_ = choose_training_images(settings_.images, *model_, images_);
    chunks_ = {images_.size(), settings_.estimator.chunk};
    if (settings_.shard.count > chunks_.count())
      throw argument_error("--shard: there are only " + std::to_string(chunks_.count()) +
                           " chunks of --chunk " + std::to_string(chunks_.size) + " images");
    if (estimator_.needs_exact_draws() && images_.source != "simulated")
      throw argument_error(
          "--method bidirectional needs --simulate N: its reverse chains start from an exact draw "
          "of the posterior, which only an image simulated from the model has. The gap on "
          "simulated "
          "images then certifies these settings for real ones");
    if (!settings_.quiet && !settings_.dry_run) std::cerr << understood_;
    if (!notice.empty()) std::cerr << notice << "\n";
    if (!images_.warning.empty()) std::cerr << "WARNING: " << images_.warning << "\n";
  }

  int run() {
    if (settings_.dry_run) return describe();
    const auto start = Clock::now();
    install_interrupt_handler();
    const json record = run_record(settings_, *model_, images_, training_images_);
    std::optional<ResultStore> store;
    if (!settings_.out.empty()) store.emplace(settings_.out, record, settings_.store);
    if (model_->needs_blas() && settings_.device.is_cpu() && !settings_.quiet)
      warn_of_slow_blas("eval-loglik");
    const int64_t threads = threads_to_use();
    EvalResults results{evaluate(threads, store ? &*store : nullptr),
                        model_->description().num_values(),
                        bits_offset(model_->description(), images_)};
    const std::vector<LikelihoodSummary> methods = summarise(results);
    json summary = summary_of(store ? store->run() : record, methods);
    summary["crais"] = crais_version();
    summary["libtorch"] = libtorch_version();
    summary[model_->record().first]["path"] = settings_.checkpoint;
    summary["images"]["source"] = images_.source;
    summary["settings"] = settings_.resolved;
    summary["shard"] = settings_.resolved["shard"];
    summary["device"] = settings_.device.str();
    summary["threads"] = threads;
    summary["evaluator"] = model_->evaluator();
    summary["peak_memory_bytes"] = peak_memory();
    summary["seconds"] = seconds_since(start);
    if (store) write_reports(store->folder(), results, summary);
    print_results(methods, summary, settings_.out, settings_.format, stdout_width());
    if (settings_.format == Format::kTable)
      std::cout << "Model " << described() << ". Evaluator " << model_->evaluator() << " on "
                << settings_.device.str() << ".\n";
    return 0;
  }

 private:
  /// "Vae (exported): 32 latents, bernoulli, prior standard-normal".
  std::string described() const {
    const ModelDescription& d = model_->description();
    return d.name + " (" + d.kind + "): " + std::to_string(d.latent) + " latents, " + d.likelihood +
           ", prior " + d.prior;
  }

  std::shared_ptr<const Target> posterior_of(const EvalImages& images, int64_t begin,
                                             int64_t end) const {
    return model_->posterior(
        images.pixels.slice(0, begin, end),
        images.latents.defined() ? images.latents.slice(0, begin, end) : images.latents,
        images.labels.defined() ? images.labels.slice(0, begin, end) : images.labels);
  }

  int64_t threads_to_use() const {
    if (!settings_.device.is_cpu()) return 1;
    const int64_t threads = resolve_threads(settings_.threads);
    if (!settings_.memory_limit) return threads;
    const int64_t problems = std::min(chunks_.size, images_.size());
    const auto largest = posterior_of(images_, 0, problems);
    const ChunkShape shape{problems, estimator_.most_particles(problems, largest->dim()),
                           largest->dim(), settings_.dtype == at::kDouble ? 8 : 4,
                           largest->working_memory()};
    return threads_within(*settings_.memory_limit, peak_memory(), chunk_memory(shape), threads);
  }

  RunResults evaluate(int64_t threads, const ResultStore* store) const {
    ProblemSource problems{
        images_.size(),
        [this](int64_t begin, int64_t end) { return posterior_of(images_, begin, end); },
        images_.indices};
    if (training_images_.size() > 0)
      problems.training = [this] {
        return posterior_of(training_images_, 0, training_images_.size());
      };
    RunProgress progress(
        {"eval-loglik", "images", "log p", "no image is done yet", !settings_.quiet});
    RunResults results =
        run_problems(problems, estimator_, {threads, settings_.shard, &progress, store});
    progress.finish();
    const auto [done, total] = progressed(results, chunks_, settings_.shard);
    if (done < total)
      throw_if_interrupted(with_commas(done) + " of " + with_commas(total) + " images done" +
                           (store ? "; the same command with --resume goes on from there"
                                  : ", nothing kept: there is no --out"));
    return results;
  }

  int describe() const {
    const EstimateOptions& e = settings_.estimator;
    std::cout << understood_ << "Model " << described() << ".\nWould evaluate "
              << with_commas(images_.size()) << " images (" << images_.source << ", "
              << images_.binarisation << ") in " << with_commas(chunks_.count()) << " chunks of "
              << chunks_.size << ", shard " << settings_.shard.index << " of "
              << settings_.shard.count << ", on " << settings_.device.str() << " with evaluator "
              << model_->evaluator() << ".\n";
    for (const auto& method : e.methods)
      std::cout << "Method " << method << " from base " << e.base << ".\n";
    if (estimator_.learns())
      std::cout << "Learning on "
                << (training_images_.size() > 0
                        ? with_commas(training_images_.size()) + " others of " +
                              training_images_.source
                        : "the first " + with_commas(std::min(e.pilot_problems, images_.size())) +
                              " images")
                << ".\n";
    if (estimator_.anneals()) {
      std::cout << "Annealing: schedule " << e.schedule << ", path " << e.path << ", kernel "
                << e.kernel << ", " << e.chains << " chains";
      if (e.budget)
        std::cout << "; temperatures and chains as a budget of "
                  << with_commas(std::llround(*e.budget)) << " evaluations an image allows";
      else if (!estimator_.is_adaptive())
        std::cout << ", " << e.steps << " transitions, "
                  << with_commas(e.chains * (1 + e.steps * e.num_leapfrog))
                  << " evaluations an image";
      std::cout << (estimator_.needs_pilot() ? "; a pilot tunes it first.\n" : "; no pilot.\n");
    }
    return 0;
  }

  EvalSettings settings_;
  std::string understood_;  // how a state_dict was read
  std::unique_ptr<EvalModel> model_;
  Estimator estimator_;
  EvalImages images_, training_images_;
  Chunks chunks_{};
};

}  // namespace

int eval_loglik(const CommandLine& cli) {
  if (cli.operands().front() == "merge") return merge_evaluations(cli);
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  return EvalRun(read_settings(cli)).run();
}

}  // namespace crais
