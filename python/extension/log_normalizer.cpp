// estimate-logz for Python.
#include "module.h"
#include "programs/estimate_logz/logz_run.h"
#include "targets/function_target.h"

namespace crais {
namespace {

/// log gamma of `problems` replicates, which `run` computes for rows z [B,D].
std::shared_ptr<const Target> target_of(const py::object& run, int64_t dim,
                                        const std::optional<at::Tensor>& starts,
                                        const LogzSettings& settings) {
  const auto density = [&run](const at::Tensor& z, const at::Tensor& /*index*/) {
    const at::Tensor rows = z.reshape({-1, z.size(-1)});
    const at::Tensor found = from_python(
        [&] { return run.attr("call")("log_density", py::make_tuple(rows)).cast<at::Tensor>(); });
    return found.reshape(z.sizes().slice(0, z.dim() - 1));
  };
  return std::make_shared<FunctionTarget>(
      FunctionTargetOptions{settings.problems, dim,
                            at::device(settings.device).dtype(settings.dtype),
                            /*replicated=*/true, starts.value_or(at::Tensor())},
      FunctionTarget::IndexedLogDensity(density));
}

/// `dim` 0: the target is a registered one, called `name`. `notes` say what was made of a function,
/// `doubts` (what, remedy) why its results are not to be trusted; `is_single`: it computes in
/// float32. `identity` tells the function from others.
RunReport run_log_normalizer(const std::string& name, const py::dict& options,
                             const py::object& run, const std::optional<at::Tensor>& starts,
                             int64_t dim, const std::vector<std::string>& notes,
                             const std::vector<std::pair<std::string, std::string>>& doubts,
                             bool is_single, const std::string& identity) {
  PythonObserver observer(run, "log Z");
  const FlagValues values = values_of(options);
  return stoppable(run, [&] {
    const Released released;
    LogzSettings settings = read_logz_settings({estimate_logz_synopsis(), {name}, values});
    settings.wants_samples = true;
    settings.in_memory = dim > 0;
    settings.notes = notes;
    for (const auto& [what, remedy] : doubts)
      settings.doubts.push_back({Doubt::kDensity, "density", what, remedy});
    settings.is_single = is_single;
    settings.identity = identity;
    return run_logz(settings,
                    dim > 0 ? target_of(run, dim, starts, settings) : named_target(settings),
                    observer);
  });
}

}  // namespace

void bind_log_normalizer(py::module_& m) { m.def("log_normalizer", &run_log_normalizer); }

}  // namespace crais
