#include "programs/eval_loglik/eval_run.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>
#include <utility>

#include "core/rng.h"
#include "evaluation/control.h"
#include "io/json.h"
#include "programs/eval_loglik/report.h"
#include "programs/run_program.h"
#include "report/pictures.h"
#include "util/error.h"
#include "util/format.h"
#include "util/memory.h"
#include "util/parallel.h"

namespace crais {
namespace {

using nlohmann::json;

/// The kind of p(x): a density or a probability. Values of different kinds are never compared.
std::string quantity(const ModelDescription& model) {
  return model.is_mass || model.likelihood == "bernoulli" ? "probability" : "density";
}

/// A density of x = stored / S is a density of the stored numbers minus log2 S bits each.
/// Probabilities of 8-bit values and of binary pixels do not change.
double bits_offset(const ModelDescription& model, const EvalImages& images) {
  return quantity(model) == "probability" ? 0.0 : std::log2(images.scale);
}

/// The `error` that the user asked for.
std::optional<double> asked_error(const EvalSettings& settings) {
  return settings.images.given.count("error") > 0 ? settings.estimator.error : std::nullopt;
}

/// Sets the chunk size if the user has not: small enough for eight threads to share the images,
/// whatever the real number of threads, because results depend on settings alone. The default
/// `error` needs a model that draws.
const EstimateOptions& completed(EvalSettings& settings, const EvalModel& model, int64_t images) {
  constexpr int64_t kThreads = 8, kLeast = 4;
  const bool is_chosen = settings.resolved.value("chunk", json()).is_number();
  if (!is_chosen && settings.device.is_cpu())
    settings.estimator.chunk =
        std::clamp((images + kThreads - 1) / kThreads, kLeast, settings.estimator.chunk);
  settings.resolved["chunk"] = settings.estimator.chunk;
  if (model.num_draws() == 0 && !asked_error(settings)) settings.estimator.error.reset();
  return settings.estimator;
}

}  // namespace

EvalRun::EvalRun(EvalSettings settings, EvalModel model, const std::optional<ArrayFile>& images)
    : settings_(std::move(settings)),
      model_(std::move(model)),
      images_(images ? choose_images(settings_.images, model_, *images)
                     : choose_images(settings_.images, model_, notice_)),
      estimator_(completed(settings_, model_, images_.size())) {
  if (!notice_.empty()) notice_ += "\n";
  warnings_ = found_warnings();
  for (const std::string& warning : warnings_) notice_ += "WARNING: " + warning + "\n";
  chunks_ = {images_.size(), settings_.estimator.chunk, choose_control()};
  if (settings_.shard.count > chunks_.count())
    throw argument_error("--shard: there are only ", chunks_.count(), " chunks of --chunk ",
                         chunks_.size, " images");
}

int64_t EvalRun::choose_control() {
  if (!estimator_.anneals())
    no_control_ = "no method anneals";
  else if (estimator_.has_upper() && images_.source == "simulated")
    no_control_ = "the method " + settings_.estimator.methods.front() + " is one itself";
  else if (!settings_.estimator.resampling.empty())
    no_control_ = "chains that resample do not run back";
  else if (model_.num_draws() == 0)
    no_control_ = "the model cannot draw images";
  const int64_t asked = settings_.control.value_or(default_control(images_.size()));
  if (no_control_.empty() && asked == 0) no_control_ = "`control` is 0";
  if (no_control_.empty()) return std::min(asked, model_.num_draws());
  if (settings_.control.value_or(0) > 0)
    throw argument_error("--control: there is none, for ", no_control_, "; leave it out");
  if (settings_.estimator.error)
    throw argument_error("--error needs a control, and there is none, for ", no_control_,
                         "; ask for --steps");
  return 0;
}

std::vector<std::string> EvalRun::found_warnings() const {
  std::vector<std::string> warnings = model_.description().warnings;
  if (!images_.warning.empty()) warnings.push_back(images_.warning);
  if (images_.is_grey)
    warnings.emplace_back(
        "grey pixels under bernoulli have no probability: log p(x) is only the value of a formula, "
        "and is not comparable with any log-likelihood");
  const std::string doubt = check_prior(model_, settings_.accept_prior,
                                        settings_.device.is_cpu() ? settings_.threads : 1);
  if (!doubt.empty()) warnings.push_back(doubt);
  return warnings;
}

RunReport EvalRun::run(RunObserver& observer) const {
  return run_in_folder(
      settings_, record(), problems(), estimator_, settings_.shard, observer,
      [&](RunResults results, json summary) {
        const ModelDescription& described = model_.description();
        const std::optional<at::ScalarType> forces = results.state.forces;
        const std::string evaluator = model_.evaluator(forces);
        summary[model_.record().first]["path"] = settings_.checkpoint;
        summary["images"]["source"] = images_.source;
        summary["shard"] = settings_.resolved["shard"];
        summary["evaluator"] = evaluator;
        summary["forces"] = forces ? "bfloat16" : "exact";
        summary["peak_memory_bytes"] = peak_memory();
        at::Tensor thumbnails = thumbnails_of_results(results);
        return report_of(
            {std::move(results), described.num_values(), bits_offset(described, images_),
             settings_.estimator.error, asked_error(settings_).has_value(), std::move(thumbnails)},
            std::move(summary),
            "Model " + about_model() + ". Evaluator " + evaluator + " on " +
                settings_.device.str() + (forces ? ", cheap forces" : "") + ".\n");
      });
}

json EvalRun::record() const {
  json record = {
      {"program", "eval-loglik"},
      {"settings", deciding_settings(settings_)},
      {"images",
       {{"count", images_.size()},
        {"source", images_.source == "simulated" ? "simulated" : "file"},
        {"file_md5", images_.data_md5},
        {"binarisation", images_.binarisation},
        {"binarisation_warning", images_.warning},
        {"dequantisation", images_.dequantisation},
        {"scale", images_.scale},
        {"values", model_.description().num_values()},
        {"quantity", quantity(model_.description())},
        {"bits_offset", bits_offset(model_.description(), images_)},
        {"sha256", images_.digest}}},
      {"control",
       {{"images", chunks_.control}, {"error", json_number(settings_.estimator.error)}}}};
  if (!no_control_.empty()) record["control"]["none"] = no_control_;
  const auto [key, identity] = model_.record();
  record[key] = identity;
  if (!warnings_.empty()) record["warnings"] = warnings_;
  return record;
}

/// A picture of each image in the results, in their order. The shape of an image comes from the
/// model or from the file; if both hold flat data, it is unknown.
at::Tensor EvalRun::thumbnails_of_results(const RunResults& results) const {
  const std::vector<int64_t>& model_shape = model_.description().data_shape;
  at::Tensor all =
      thumbnails_of(images_.pixels, model_shape.size() > 1 ? model_shape : images_.shape);
  if (!all.defined()) return all;
  std::vector<at::Tensor> parts;
  for (const auto& [number, chunk] : results.chunks)
    parts.push_back(all.slice(0, number * chunks_.size, (number + 1) * chunks_.size));
  return at::cat(parts);
}

/// A line on the model: "Vae (exported): 32 latents, bernoulli, prior standard-normal".
std::string EvalRun::about_model() const {
  const ModelDescription& d = model_.description();
  return d.name + " (" + d.kind + "): " + std::to_string(d.latent) + " latents, " + d.likelihood +
         ", prior " + d.prior;
}

std::shared_ptr<const Target> EvalRun::posterior_of(int64_t begin, int64_t end) const {
  const auto part = [&](const at::Tensor& all) {
    return all.defined() ? all.slice(0, begin, end) : all;
  };
  return model_.posterior(part(images_.pixels), part(images_.latents), part(images_.labels));
}

ProblemSource EvalRun::problems() const {
  ProblemSource all{images_.size(),
                    [this](int64_t begin, int64_t end) { return posterior_of(begin, end); },
                    images_.indices};
  if (chunks_.control > 0)
    all.control = std::make_shared<const ProblemSource>(
        ProblemSource{chunks_.control, [this](int64_t begin, int64_t end) {
                        const uint64_t seed = derive_seed(settings_.images.seed, Purpose::kControl);
                        const LatentModel::Draws drawn = draws_of(model_, seed, begin, end);
                        return model_.posterior(drawn.data, drawn.latents, drawn.labels);
                      }});
  return all;
}

std::string EvalRun::describe() const {
  std::ostringstream text;
  const EstimateOptions& e = settings_.estimator;
  text << "Model " << about_model() << ".\nWould evaluate " << with_commas(images_.size())
       << " images (" << images_.source << ", " << images_.binarisation << ") in "
       << with_commas(chunks_.count()) << " chunks of " << chunks_.size << ", shard "
       << settings_.shard.index << " of " << settings_.shard.count << ", on "
       << settings_.device.str() << " with evaluator " << model_.evaluator({}) << ", forces "
       << e.force_dtype << ".\n";
  for (const auto& method : e.methods)
    text << "Method " << method << " from base " << e.base << ".\n";
  if (estimator_.learns())
    text << "Learning on the first " << with_commas(std::min(e.pilot_problems, images_.size()))
         << " images.\n";
  text << "Control: "
       << (chunks_.control > 0 ? std::to_string(chunks_.control) + " images that the model draws.\n"
                               : "none, for " + no_control_ + ".\n");
  if (estimator_.anneals()) {
    text << "Annealing: schedule " << e.schedule << ", path " << e.path << ", kernel " << e.kernel
         << ", " << e.chains << " chains";
    if (e.budget)
      text << "; temperatures and chains as a budget of " << with_commas(std::llround(*e.budget))
           << " evaluations an image allows";
    else if (!estimator_.is_adaptive())
      text << ", " << e.steps << " transitions, "
           << with_commas(e.chains * (1 + e.steps * e.num_leapfrog)) << " evaluations an image";
    if (e.error)
      text << ", or longer, as the control says, up to "
           << with_commas(std::llround(e.max_evaluations));
    text << (estimator_.needs_pilot() ? "; a pilot tunes it first.\n" : "; no pilot.\n");
  }
  return text.str();
}

std::optional<RunReport> evaluate_model(const EvalSettings& settings) {
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  const EvalRun run(
      settings, open_model(settings.checkpoint, settings.script, settings.device, settings.dtype));
  std::cerr << run.notice();
  if (settings.dry_run) {
    std::cout << run.describe();
    return {};
  }
  return complete_run(settings, {"eval-loglik", "images", "log p", !settings.quiet},
                      [&](RunObserver& observer) { return run.run(observer); });
}

}  // namespace crais
