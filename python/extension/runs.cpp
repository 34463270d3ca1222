// The programs' runs for Python.
#include "core/rng.h"
#include "models/function_model.h"
#include "module.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/eval_run.h"
#include "programs/train_vae/train_vae.h"
#include "targets/function_target.h"
#include "util/digest.h"

namespace crais {
namespace {

/// The model that `manifest` describes and `run` computes.
EvalModel model_of(const std::string& manifest, const Run& run, at::Device device) {
  const ModelFunctions functions = [&run](const std::string& name,
                                          const std::vector<at::Tensor>& inputs) {
    return run.ask("call", name, inputs).get<std::vector<at::Tensor>>();
  };
  return latent_eval_model(
      function_model(read_manifest(manifest, "the model in memory"), functions, device),
      sha256(manifest), at::device(device));
}

/// The bytes of a tensor; "" without one.
std::string bytes_of(const Array& bytes) {
  if (!bytes) return "";
  return {reinterpret_cast<const char*>(bytes->data_ptr()), static_cast<size_t>(bytes->numel())};
}

/// Arguments: name, options, images, labels, manifest, device. There is no manifest where the name
/// is a file's, and no images where the options choose them.
Json run_evaluation(const Json& a, const Run& run) {
  PythonObserver observer(run, "log p");
  const std::string name = a[0], described = bytes_of(a[4].get<Array>());
  const FlagValues values = a[1];
  const auto images = a[2].get<Array>(), labels = a[3].get<Array>();
  const at::Device device(a[5].get<std::string>());
  return keep(stoppable(run, [&] {
    const Released released;
    EvalSettings settings = read_settings({eval_loglik_synopsis(), {name}, values});
    settings.in_memory = images || !described.empty();
    const EvalModel model = described.empty() ? open_model(settings.checkpoint, settings.script,
                                                           settings.device, settings.dtype)
                                              : model_of(described, run, device);
    const EvalRun evaluation(
        settings, model,
        images ? std::optional(array_in_memory(*images, labels, "images")) : std::nullopt);
    run.ask("start", evaluation.notice(), evaluation.images().pixels,
            model.description().data_shape);
    return evaluation.run(observer);
  }));
}

/// log gamma of `problems` replicates, which `run` computes for rows z [B,D].
std::shared_ptr<const Target> target_of(const Run& run, int64_t dim, const Array& starts,
                                        const Array& draws, bool has_prior, const LogzSettings& s) {
  const auto density = [&run](const at::Tensor& z, const at::Tensor& /*index*/) {
    const at::Tensor rows = z.reshape({-1, z.size(-1)});
    const auto found =
        run.ask("call", "log_density", std::vector<at::Tensor>{rows}).get<at::Tensor>();
    return found.reshape(z.sizes().slice(0, z.dim() - 1));
  };
  return std::make_shared<FunctionTarget>(
      FunctionTargetOptions{s.problems, dim, at::device(s.device).dtype(s.dtype),
                            starts.value_or(at::Tensor()), draws.value_or(at::Tensor()), has_prior},
      FunctionTarget::IndexedLogDensity(density));
}

/// Arguments: name, options, starts, draws, dim, notes, doubts, is_single, identity, has_prior. Of
/// `dim` 0 the target is a registered one of this name. `notes` say what was made of a function,
/// `doubts` (what, remedy) why its results are not to be trusted; `is_single`: it computes in
/// float32. `identity` tells it from others. Nothing from a program, which prints it.
Json run_log_normalizer(const Json& a, const Run& run) {
  PythonObserver observer(run, "log Z");
  const std::string name = a[0];
  const FlagValues values = a[1];
  const auto starts = a[2].get<Array>(), draws = a[3].get<Array>();
  const int64_t dim = a[4];
  const bool is_program = run.ask("is_program");
  const TargetOf target_for = [&](LogzSettings& settings) {
    if (dim == 0) return named_target(settings);
    if (!settings.data_dir.empty())
      throw argument_error("--data-dir does nothing for a function, which reads its own files");
    settings.in_memory = true;
    settings.notes = a[5].get<std::vector<std::string>>();
    for (const Json& doubt : a[6])
      settings.doubts.push_back({Doubt::kDensity, "density", doubt[0], doubt[1]});
    settings.is_single = a[7];
    settings.identity = a[8];
    return target_of(run, dim, starts, draws, a[9], settings);
  };
  std::optional<RunReport> report = stoppable(run, [&]() -> std::optional<RunReport> {
    const Released released;
    const CommandLine cli(estimate_logz_synopsis(), {name}, values);
    if (is_program) {
      estimate_logz(cli, target_for);
      return {};
    }
    LogzSettings settings = read_logz_settings(cli);
    settings.wants_samples = true;
    const std::shared_ptr<const Target> target = target_for(settings);
    return run_logz(settings, target, observer);
  });
  return report ? keep(*std::move(report)) : Json();
}

/// The settings that decide the results of a program's run, with their defaults.
Json settings(const Json& a, const Run& /*run*/) {
  const FlagValues values = a[1];
  const nlohmann::json decide =
      a[0] == "eval-loglik"
          ? deciding_settings(read_settings({eval_loglik_synopsis(), {"-"}, values}))
          : deciding_settings(read_logz_settings({estimate_logz_synopsis(), {"-"}, values}));
  return decide.dump();
}

/// Arguments: name, options, count. Of a registered target a value of the density, which stands for
/// the files that it has read. Where they are known, log Z, the masses of its modes [M] and `count`
/// exact draws [count,D].
Json known_of(const Json& a, const Run& /*run*/) {
  const std::string name = a[0];
  const FlagValues values = a[1];
  const Released released;
  const std::shared_ptr<const Target> target =
      named_target(read_logz_settings({estimate_logz_synopsis(), {name}, values}))->slice(0, 1);
  const auto first = [](const Array& all) { return all ? Array((*all)[0]) : Array(); };
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const auto modes = target->components(at::zeros({1, 1, target->dim()}, at::kDouble));
  return Json::array({doubles({probe(*target)}), first(target->true_log_normalizer()),
                      modes ? Array(modes->masses) : Array(),
                      first(target->exact_sample(a[2].get<int64_t>(), rng))});
}

class PythonTraining : public TrainingObserver {
 public:
  explicit PythonTraining(const Run& run) : run_(run) {}

  void progress(int64_t done, int64_t total, const std::string& status) override {
    stopped_ = !run_.tell("show", done, total, status) || stopped_;
  }
  void epoch(const EpochMetrics& metrics) override {
    stopped_ = !run_.tell("epoch", Json(metrics)) || stopped_;
  }
  void notice(const std::string& line) override { run_.ask("warn", line); }
  bool stop() override {
    stopped_ = !run_.tell("poll") || stopped_ || interrupted();
    return stopped_;
  }

 private:
  const Run& run_;
  bool stopped_ = false;
};

/// Of options, the checkpoint's path, the metrics of each epoch, and which is the best.
Json run_training(const Json& a, const Run& run) {
  PythonTraining observer(run);
  const FlagValues values = a[0];
  const Training done = stoppable(run, [&] {
    const WithoutPython released;
    return train_vae(train_vae_options({train_vae_synopsis(), {}, values}), observer);
  });
  return Json::array({done.checkpoint.string(), done.epochs, done.best.epoch});
}

}  // namespace

Functions functions_of_runs() {
  return {{"evaluate", run_evaluation},
          {"log_normalizer", run_log_normalizer},
          {"train_vae", run_training},
          {"settings", settings},
          {"known", known_of}};
}

}  // namespace crais
