// eval-loglik for Python.
#include "cli/program.h"
#include "models/function_model.h"
#include "module.h"
#include "observer.h"
#include "programs/eval_loglik/eval_run.h"
#include "util/files.h"

namespace crais {
namespace {

/// The model that `manifest` describes and `run` computes, on the device of `like`.
std::unique_ptr<EvalModel> model_of(const std::string& manifest, const py::object& run,
                                    const at::Tensor& like) {
  const ModelFunctions functions = [&run](const std::string& name,
                                          const std::vector<at::Tensor>& inputs) {
    return from_python(
        [&] { return run.attr("call")(name, inputs).cast<std::vector<at::Tensor>>(); });
  };
  return latent_eval_model(
      function_model(read_manifest(manifest, "the model in memory"), functions, like.options()),
      sha256(manifest), like.options());
}

RunReport run_evaluation(const std::vector<std::string>& arguments, const py::object& run,
                         const std::optional<at::Tensor>& images, const py::bytes& manifest,
                         const at::Tensor& like) {
  PythonObserver observer(run, "log p");
  const std::string described = manifest;
  const Released released;
  const EvalSettings settings = read_settings({eval_loglik_synopsis(), arguments});
  std::string notice;
  const std::shared_ptr<const EvalModel> model =
      described.empty() ? open_model(settings.checkpoint, settings.state_dict, settings.device,
                                     settings.dtype, notice)
                        : model_of(described, run, like);
  const std::optional<ArrayFile> given =
      images ? std::optional(array_in_memory(*images, "images")) : std::nullopt;
  const EvalRun evaluation(settings, model, given);
  from_python([&] { run.attr("note")(evaluation.notice()); });
  return evaluation.run(observer);
}

}  // namespace

void bind_evaluate(py::module_& m) { m.def("evaluate", &run_evaluation); }

}  // namespace crais
