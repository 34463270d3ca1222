// The programs' runs for Python.
#include <nlohmann/json.hpp>

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

using Array = std::optional<at::Tensor>;

/// The model that `manifest` describes and `run` computes.
EvalModel model_of(const std::string& manifest, const py::object& run, at::Device device) {
  const ModelFunctions functions = [&run](const std::string& name,
                                          const std::vector<at::Tensor>& inputs) {
    return from_python(
        [&] { return run.attr("call")(name, inputs).cast<std::vector<at::Tensor>>(); });
  };
  return latent_eval_model(
      function_model(read_manifest(manifest, "the model in memory"), functions, device),
      sha256(manifest), at::device(device));
}

/// `manifest` is empty where `name` is a file's, `images` where the options choose them.
RunReport run_evaluation(const std::string& name, const Options& options, const py::object& run,
                         const Array& images, const Array& labels, const py::bytes& manifest,
                         at::Device device) {
  PythonObserver observer(run, "log p");
  const std::string described = manifest;
  const FlagValues values = values_of(options);
  return stoppable(run, [&] {
    const Released released;
    EvalSettings settings = read_settings({eval_loglik_synopsis(), {name}, values});
    settings.in_memory = images || !described.empty();
    const EvalModel model = described.empty() ? open_model(settings.checkpoint, settings.script,
                                                           settings.device, settings.dtype)
                                              : model_of(described, run, device);
    const EvalRun evaluation(
        settings, model,
        images ? std::optional(array_in_memory(*images, labels, "images")) : std::nullopt);
    from_python([&] {
      run.attr("start")(evaluation.notice(), evaluation.images().pixels,
                        model.description().data_shape);
    });
    return evaluation.run(observer);
  });
}

/// log gamma of `problems` replicates, which `run` computes for rows z [B,D].
std::shared_ptr<const Target> target_of(const py::object& run, int64_t dim, const Array& starts,
                                        const Array& draws, const LogzSettings& settings) {
  const auto density = [&run](const at::Tensor& z, const at::Tensor& /*index*/) {
    const at::Tensor rows = z.reshape({-1, z.size(-1)});
    const at::Tensor found = from_python(
        [&] { return run.attr("call")("log_density", py::make_tuple(rows)).cast<at::Tensor>(); });
    return found.reshape(z.sizes().slice(0, z.dim() - 1));
  };
  return std::make_shared<FunctionTarget>(
      FunctionTargetOptions{settings.problems, dim,
                            at::device(settings.device).dtype(settings.dtype),
                            starts.value_or(at::Tensor()), draws.value_or(at::Tensor())},
      FunctionTarget::IndexedLogDensity(density));
}

/// `dim` 0: the target is a registered one, called `name`. `notes` say what was made of a function,
/// `doubts` (what, remedy) why its results are not to be trusted; `is_single`: it computes in
/// float32. `identity` tells the function from others. Nothing from a program, which prints it.
std::optional<RunReport> run_log_normalizer(
    const std::string& name, const Options& options, const py::object& run, const Array& starts,
    const Array& draws, int64_t dim, const std::vector<std::string>& notes,
    const std::vector<std::pair<std::string, std::string>>& doubts, bool is_single,
    const std::string& identity) {
  PythonObserver observer(run, "log Z");
  const FlagValues values = values_of(options);
  const bool is_program = run.attr("is_program").cast<bool>();
  const TargetOf target_for = [&](LogzSettings& settings) {
    if (dim == 0) return named_target(settings);
    if (!settings.data_dir.empty())
      throw argument_error("--data-dir does nothing for a function, which reads its own files");
    settings.in_memory = true;
    settings.notes = notes;
    for (const auto& [what, remedy] : doubts)
      settings.doubts.push_back({Doubt::kDensity, "density", what, remedy});
    settings.is_single = is_single;
    settings.identity = identity;
    return target_of(run, dim, starts, draws, settings);
  };
  return stoppable(run, [&]() -> std::optional<RunReport> {
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
}

/// The settings that decide the results of a program's run, with their defaults.
std::string settings(const std::string& program, const Options& options) {
  const FlagValues values = values_of(options);
  const nlohmann::json decide =
      program == "eval-loglik"
          ? deciding_settings(read_settings({eval_loglik_synopsis(), {"-"}, values}))
          : deciding_settings(read_logz_settings({estimate_logz_synopsis(), {"-"}, values}));
  return decide.dump();
}

/// Of a registered target a value of the density, which stands for the files that it has read.
/// Where they are known, log Z, the masses of its modes [M] and `count` exact draws [count,D].
std::tuple<double, Array, Array, Array> known_of(const std::string& name, const Options& options,
                                                 int64_t count) {
  const FlagValues values = values_of(options);
  const Released released;
  const std::shared_ptr<const Target> target =
      named_target(read_logz_settings({estimate_logz_synopsis(), {name}, values}))->slice(0, 1);
  const auto first = [](const Array& all) { return all ? Array((*all)[0]) : Array(); };
  at::Generator rng = make_generator(derive_seed(0, Purpose::kSimulate));
  const auto modes = target->components(at::zeros({1, 1, target->dim()}, at::kDouble));
  return {probe(*target), first(target->true_log_normalizer()),
          modes ? Array(modes->masses) : Array(), first(target->exact_sample(count, rng))};
}

std::string text_of(const EpochMetrics& metrics) { return nlohmann::json(metrics).dump(); }

class PythonTraining : public TrainingObserver {
 public:
  explicit PythonTraining(const py::object& run) : run_(run) {}

  void progress(int64_t done, int64_t total, const std::string& status) override {
    stopped_ = !told([&] { run_.attr("show")(done, total, status); }) || stopped_;
  }
  void epoch(const EpochMetrics& metrics) override {
    stopped_ = !told([&] { run_.attr("epoch")(text_of(metrics)); }) || stopped_;
  }
  void notice(const std::string& line) override {
    from_python([&] { run_.attr("warn")(line); });
  }
  bool stop() override {
    stopped_ = !told([] {}) || stopped_ || interrupted();
    return stopped_;
  }

 private:
  const py::object& run_;
  bool stopped_ = false;
};

/// The checkpoint's path, the metrics of each epoch, and which is the best.
std::tuple<std::string, std::vector<std::string>, int64_t> run_training(const Options& options,
                                                                        const py::object& run) {
  PythonTraining observer(run);
  const FlagValues values = values_of(options);
  const Training done = stoppable(run, [&] {
    const py::gil_scoped_release no_gil;
    return train_vae(train_vae_options({train_vae_synopsis(), {}, values}), observer);
  });
  std::vector<std::string> epochs;
  for (const EpochMetrics& metrics : done.epochs) epochs.push_back(text_of(metrics));
  return {done.checkpoint.string(), epochs, done.best.epoch};
}

}  // namespace

void bind_runs(py::module_& m) {
  m.def("evaluate", &run_evaluation);
  m.def("log_normalizer", &run_log_normalizer);
  m.def("train_vae", &run_training);
  m.def("settings", &settings);
  m.def("known", &known_of);
}

}  // namespace crais
