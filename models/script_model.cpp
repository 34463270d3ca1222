#include "models/script_model.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "io/zip.h"
#include "models/autocast.h"
#include "models/model_manifest.h"
#include "util/error.h"
#include "util/files.h"

namespace crais {
namespace {

constexpr const char* kExtra = "crais.safetensors";

/// The line of an error of LibTorch's that says what is wrong: the interpreter's is the last.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  const std::string mark = "RuntimeError: ";
  if (const auto at = text.rfind(mark); at != std::string::npos)
    text = text.substr(at + mark.size());
  return text.substr(0, text.find('\n'));
}

/// Runs a call of LibTorch's; what it throws is a fault of the file.
template <typename Call>
auto of_file(const std::string& where, const std::string& what, const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw data_error(where + ": " + what + ": " + reason_of(error));
  }
}

class ScriptModel : public ManifestModel {
 public:
  ScriptModel(ModelManifest manifest, const std::string& where, torch::jit::Module module,
              const at::TensorOptions& options)
      : ManifestModel(std::move(manifest), where), module_(std::move(module)), options_(options) {
    for (const std::string& function : description().functions)
      if (!module_.find_method(method_of(function)))
        throw data_error(where + ": has no method \"" + method_of(function) + "\"");
  }

  std::string evaluator() const override { return "torchscript"; }

  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override {
    return differentiated("joint", z, {x, y});
  }
  /// By autocast around a pass forward and back, beside a pass forward in float32.
  bool has_forces(at::ScalarType dtype) const override {
    return dtype == at::kBFloat16 && c10::typeMetaToScalarType(options_.dtype()) == at::kFloat &&
           (options_.device().is_cpu() || options_.device().is_cuda());
  }
  /// Nothing measured it: it pays where products take nearly all of the time.
  bool forces_pay(at::ScalarType /*dtype*/) const override { return false; }
  Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                            at::ScalarType dtype) const override {
    if (!has_forces(dtype)) return ManifestModel::joint_with_forces(z, x, y, dtype);
    const c10::NoGradGuard no_grad;
    const at::Tensor value = results("joint", {z, x, y}, {{z.size(0)}})[0];
    const Autocast shorter(options_.device(), dtype);
    return {value, differentiated("joint", z, {x, y}).grad};
  }
  std::optional<Density> prior(const at::Tensor& z) const override {
    if (!description().has("prior")) return {};
    return differentiated("prior", z, {});
  }

 private:
  static std::string method_of(const std::string& function) {
    return function == "joint" ? "log_joint" : function == "prior" ? "log_prior" : function;
  }

  Density differentiated(const std::string& function, const at::Tensor& z,
                         const std::vector<at::Tensor>& others) const {
    c10::AutoGradMode with_grad(true);
    const at::Tensor leaf = z.detach().requires_grad_(true);
    std::vector<at::Tensor> inputs = {leaf};
    inputs.insert(inputs.end(), others.begin(), others.end());
    const at::Tensor value = results(function, std::move(inputs), {{z.size(0)}})[0];
    if (!value.requires_grad())
      throw data_error(where() + ": '" + function + "' does not depend on z");
    return {value.detach(), torch::autograd::grad({value.sum()}, {leaf})[0]};
  }

  std::vector<at::Tensor> call(const std::string& function,
                               std::vector<at::Tensor> inputs) const override {
    for (at::Tensor& input : inputs)
      input = at::isFloatingType(input.scalar_type()) ? input.to(options_)
                                                      : input.to(options_.device());
    return of_file(where(), "'" + function + "' fails", [&] {
      const c10::IValue result =
          module_.get_method(method_of(function))({inputs.begin(), inputs.end()});
      std::vector<at::Tensor> tensors;
      if (result.isTensor()) return std::vector<at::Tensor>{result.toTensor()};
      for (const c10::IValue& one : result.toTupleRef().elements())
        tensors.push_back(one.toTensor());
      return tensors;
    });
  }

  torch::jit::Module module_;
  at::TensorOptions options_;
};

}  // namespace

bool is_script_model(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  if (!is_zip(bytes)) return false;
  const ZipArchive archive(bytes, path.string());
  const std::string end = "/constants.pkl";  // what torch.save does not write
  return std::any_of(archive.names().begin(), archive.names().end(), [&](const std::string& name) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  });
}

std::shared_ptr<const LatentModel> read_script_model(const std::filesystem::path& path,
                                                     at::Device device, at::ScalarType dtype) {
  const std::string where = path.string();
  torch::jit::setGraphExecutorOptimize(false);  // what it specialises costs more than it brings
  torch::jit::ExtraFilesMap extra{{kExtra, ""}};
  torch::jit::Module module = of_file(where, "cannot be loaded as TorchScript", [&] {
    torch::jit::Module loaded = torch::jit::load(where, device, extra);
    loaded.eval();
    loaded.to(dtype);
    for (const at::Tensor& parameter : loaded.parameters()) parameter.set_requires_grad(false);
    return loaded;
  });
  if (extra.at(kExtra).empty())
    throw data_error(where +
                     ": TorchScript that does not say what it is; write it with "
                     "crais.export(\"name.pt\", ...)");
  ModelManifest manifest = read_manifest(extra.at(kExtra), where + ": extra/" + kExtra);
  manifest.model.kind = "TorchScript";
  const at::TensorOptions options = at::device(device).dtype(dtype);
  auto model = std::make_shared<ScriptModel>(manifest, where, std::move(module), options);
  check_values(manifest, *model, where);
  return model;
}

}  // namespace crais
