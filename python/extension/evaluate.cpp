// eval-loglik for Python.
#include "cli/program.h"
#include "models/function_model.h"
#include "module.h"
#include "programs/eval_loglik/eval_run.h"
#include "util/digest.h"

namespace crais {
namespace {

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

using Array = std::optional<at::Tensor>;

/// `manifest` is empty where `name` is a file's, `images` where the options choose them.
RunReport run_evaluation(const std::string& name, const py::dict& options, const py::object& run,
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

}  // namespace

void bind_evaluate(py::module_& m) { m.def("evaluate", &run_evaluation); }

}  // namespace crais
