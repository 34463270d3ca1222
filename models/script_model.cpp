#include "models/script_model.h"

#include <c10/core/GradMode.h>
#include <torch/script.h>

#include <sstream>
#include <vector>

#include "core/rng.h"
#include "models/function_model.h"
#include "models/model_manifest.h"
#include "util/error.h"

namespace crais {
namespace {

/// Calls LibTorch. Its exceptions become errors of the file, by the line that states the cause: the
/// last line for the interpreter.
template <typename Call>
auto of_file(const std::string& what, const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    std::string text = error.what();
    const std::string mark = "RuntimeError: ";
    if (const auto at = text.rfind(mark); at != std::string::npos)
      text = text.substr(at + mark.size());
    throw data_error(what, ": ", text.substr(0, text.find('\n')));
  }
}

/// A module on its device and of its type.
struct Script {
  std::string where;
  at::TensorOptions options;
  torch::jit::Module module;

  bool has(const std::string& method) const { return module.find_method(method).has_value(); }

  /// Calls a method, which returns a tensor or a tuple of tensors.
  std::vector<at::Tensor> call(const std::string& method, std::vector<at::Tensor> inputs) const {
    return of_file(where + ": '" + method + "' fails", [&]() -> std::vector<at::Tensor> {
      for (at::Tensor& input : inputs)
        input = at::isFloatingType(input.scalar_type()) ? input.to(options)
                                                        : input.to(options.device());
      const c10::IValue result = module.get_method(method)({inputs.begin(), inputs.end()});
      if (result.isTensor()) return {result.toTensor()};
      std::vector<at::Tensor> tensors;
      for (const c10::IValue& one : result.toTupleRef().elements())
        tensors.push_back(one.toTensor());
      return tensors;
    });
  }
};

/// The functions of a module that crais.export wrote, which returns values without gradients.
ModelFunctions functions_of(const Script& script) {
  return [=](const std::string& name, const std::vector<at::Tensor>& inputs) {
    if (name != "joint" && name != "prior") return script.call(name, inputs);
    return of_file(script.where + ": '" + name + "' has no gradient", [&] {
      return with_gradient(inputs[0], [&, arguments = inputs](const at::Tensor& z) mutable {
        arguments[0] = z;
        return script.call("log_" + name, arguments)[0];
      });
    });
  };
}

/// Throws unless the decoder makes, of each row alone, finite values that the likelihood allows.
void check_decoder(const std::function<at::Tensor(const at::Tensor&)>& decode, int64_t latent,
                   const Likelihood& likelihood, bool probs, const std::string& what) {
  at::Generator rng = make_generator(0);
  const at::Tensor z = at::empty({64, latent}, at::kFloat).normal_(0, 1, rng), made = decode(z);
  if (!made.isfinite().all().item<bool>())
    throw data_error(what, "values that are not finite at a draw from N(0, I)");
  const auto differs = [&](const at::Tensor& other, double tolerance) {
    const double apart = (other - made.slice(0, 0, other.size(0))).abs().max().item<double>();
    return apart > tolerance * (1 + made.abs().max().item<double>());
  };
  if (differs(decode(z), 1e-6))
    throw data_error(what, "different values at each call: is a latent drawn inside?");
  if (differs(decode(z.slice(0, 0, 1)), 1e-4))
    throw data_error(what, "different values for a row if other rows are in the batch");
  const bool is_unit = made.ge(0).logical_and(made.le(1)).all().item<bool>();
  if (likelihood.is_of_logits() && is_unit != probs)
    throw argument_error(
        what, (probs ? "values outside [0, 1], but bernoulli:probs takes probabilities"
                     : "values in [0, 1], as after a sigmoid, but the likelihood takes logits; "
                       "bernoulli:probs takes probabilities"));
}

/// The model of a module that crais.export did not write.
std::shared_ptr<const LatentModel> plain_model(const Script& script, const ScriptOptions& asked) {
  const c10::NoGradGuard no_grad;
  const std::string &where = script.where, method = script.has("decode") ? "decode" : "forward";
  if (asked.likelihood.empty() || asked.latent == 0)
    throw argument_error(where,
                         ": TorchScript that does not describe itself; give `likelihood`, such as "
                         "bernoulli, and `latent`, the size D of z [B,D], or export the model");
  const bool probs = asked.likelihood == "bernoulli:probs";
  DecoderFunctions functions;
  functions.likelihood = parse_likelihood(probs ? "bernoulli" : asked.likelihood);
  const auto decode = [=](const at::Tensor& z) {
    const auto made = script.call(method, {z});
    if (made.size() != 1 || !at::isFloatingType(made[0].scalar_type()) || made[0].dim() < 2 ||
        made[0].size(0) != z.size(0) || made[0].numel() == 0)
      throw data_error(where, ": '", method, "' does not make one tensor [B, ...] of z [B,D]");
    return made[0];
  };
  check_decoder(decode, asked.latent, functions.likelihood, probs,
                where + ": '" + method + "' makes ");
  // Logits of probabilities are finite even if a sigmoid was rounded to 0 or 1.
  const double most = script.options.dtype() == at::kDouble ? 1 - 0x1p-53 : 1 - 0x1p-24;
  functions.decode = [=](const at::Tensor& z) {
    return probs ? decode(z).clamp(1e-37, most).logit() : decode(z);
  };
  if (script.has("encode"))
    functions.encode = [=](const at::Tensor& x) -> Vae::Posterior {
      const auto q = script.call("encode", {x});
      if (q.size() != 2) throw data_error(where, ": 'encode' makes no mean and log-variance");
      return {q[0], q[1]};
    };
  ModelDescription d{.name = where.substr(where.rfind('/') + 1), .kind = kPlainScript};
  d.set_likelihood(functions.likelihood);
  d.latent = asked.latent;
  d.data_shape = decode(at::zeros({1, d.latent})).sizes().slice(1).vec();
  return decoder_model(d, functions, {script.options.device(), "torchscript", where});
}

}  // namespace

std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file, at::Device device,
                                                     at::ScalarType dtype,
                                                     const ScriptOptions& script) {
  Script loaded{file.where(), at::device(device).dtype(dtype), {}};
  torch::jit::setGraphExecutorOptimize(false);  // its specialisation costs more than it saves
  torch::jit::ExtraFilesMap extra{{"crais.safetensors", ""}};
  std::string& description = extra.begin()->second;
  of_file(loaded.where + ": cannot be loaded as TorchScript", [&] {
    std::istringstream bytes(file.bytes);
    loaded.module = torch::jit::load(bytes, device, extra);
    loaded.module.eval();
    loaded.module.to(dtype);
    for (const at::Tensor& one : loaded.module.parameters()) one.set_requires_grad(false);
  });
  if (description.empty()) return plain_model(loaded, script);
  ModelManifest manifest = read_manifest(description, loaded.where + ": its description");
  manifest.model.kind = "TorchScript";
  const auto model = std::make_shared<FunctionModel>(
      manifest, functions_of(loaded), FunctionPlace{device, "torchscript", loaded.where});
  check_values(manifest, *model, loaded.where);
  return model;
}

}  // namespace crais
