#include "models/script_model.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/passes/graph_rewrite_helper.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "models/function_model.h"
#include "models/model_manifest.h"
#include "util/error.h"

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

/// What a method returns: a tensor, or a tuple of them. Inputs are moved to where the module is.
std::vector<at::Tensor> call_method(const torch::jit::Module& module, const std::string& method,
                                    std::vector<at::Tensor> inputs,
                                    const at::TensorOptions& options) {
  for (at::Tensor& input : inputs)
    input =
        at::isFloatingType(input.scalar_type()) ? input.to(options) : input.to(options.device());
  const c10::IValue result = module.get_method(method)({inputs.begin(), inputs.end()});
  if (result.isTensor()) return {result.toTensor()};
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& one : result.toTupleRef().elements()) tensors.push_back(one.toTensor());
  return tensors;
}

/// Traces have `_convolution`, which autocast on the CPU does not know; it knows those by name.
void name_convolutions(const torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules())
    for (const torch::jit::Method& method : part.get_methods()) {
      std::shared_ptr<torch::jit::Graph> graph = method.graph();
      torch::jit::graph_rewrite_helper::replaceConvolutionWithAtenConv(graph);
    }
}

/// The functions of a module that crais.export wrote, which returns values alone.
ModelFunctions functions_of(const torch::jit::Module& module, const std::vector<std::string>& names,
                            const std::string& where, const at::TensorOptions& options) {
  const auto method_of = [](const std::string& function) -> std::string {
    if (function == "joint" || function == kJointForces) return "log_joint";
    return function == "prior" ? "log_prior" : function;
  };
  for (const std::string& name : names)
    if (!module.find_method(method_of(name)))
      throw data_error(where + ": has no method \"" + method_of(name) + "\"");
  of_file(where, "cannot be read", [&] { name_convolutions(module); });
  return [=](const std::string& name, const std::vector<at::Tensor>& inputs) {
    const auto call = [&](std::vector<at::Tensor> given) {
      return of_file(where, "'" + name + "' fails",
                     [&] { return call_method(module, method_of(name), given, options); });
    };
    if (name != "joint" && name != kJointForces && name != "prior") return call(inputs);
    const auto value = [&](const at::Tensor& z) {
      std::vector<at::Tensor> given = inputs;
      given[0] = z;
      const at::Tensor found = call(given)[0];
      if (c10::GradMode::is_enabled() && !found.requires_grad())
        throw data_error(where + ": '" + name + "' does not depend on z");
      return found;
    };
    return name == kJointForces ? with_short_gradient(inputs[0], value)
                                : with_gradient(inputs[0], value);
  };
}

/// The method by which a module of another program decodes.
std::string decoder_of(const torch::jit::Module& module) {
  return module.find_method("decode") ? "decode" : "forward";
}

/// What a module of another program makes of latents [B,D]: [B, ...].
at::Tensor decoded(const torch::jit::Module& module, const at::Tensor& z,
                   const at::TensorOptions& options, const std::string& where) {
  const std::string name = "'" + decoder_of(module) + "'";
  const auto made = of_file(where, name + " fails",
                            [&] { return call_method(module, decoder_of(module), {z}, options); });
  if (made.size() != 1 || !at::isFloatingType(made[0].scalar_type()) || made[0].dim() < 2 ||
      made[0].size(0) != z.size(0) || made[0].numel() == 0)
    throw data_error(where + ": " + name + " does not make one tensor [B, ...] of z [B,D]");
  return made[0];
}

/// The one number of latents that a decoder takes, among the sizes of its weights.
int64_t find_latent(const torch::jit::Module& module, const at::TensorOptions& options,
                    const std::string& where) {
  std::set<int64_t> sizes = {1};  // which fits where others do by broadcasting alone
  for (const at::Tensor& weight : module.parameters())
    sizes.insert(weight.sizes().begin(), weight.sizes().end());
  std::vector<int64_t> taken;
  for (const int64_t dim : sizes) {
    if (dim < 1 || dim > kMostLatents) continue;
    try {
      decoded(module, at::zeros({2, dim}), options, where);
      taken.push_back(dim);
    } catch (const Error&) {  // not so many
    }
  }
  const std::string decoder = where + ": its '" + decoder_of(module) + "' takes ";
  if (taken.empty())
    throw argument_error(decoder +
                         "no z [B,D] with D a size of its weights; say what D is by `latent`");
  if (taken.size() > 1)
    throw argument_error(decoder + "z [B,D] of D = " + std::to_string(taken[0]) + ", " +
                         std::to_string(taken[1]) + " and perhaps more; say which by `latent`");
  const int64_t made = decoded(module, at::zeros({1, taken[0]}), options, where).numel();
  if (made == taken[0] && made > 1)
    throw argument_error(
        decoder + "as many numbers (" + std::to_string(made) +
        ") as it gives back: is this encoder and decoder in one? Write the decoder "
        "alone; if it is one, say `latent` " +
        std::to_string(made));
  return taken[0];
}

/// Refuses outputs that are not what the likelihood takes them for. Returns what is in doubt.
std::vector<std::string> check_outputs(const at::Tensor& outputs,
                                       const DecoderLikelihood& likelihood,
                                       const std::string& what) {
  if (!likelihood.likelihood.is_of_logits()) return {};
  const bool is_unit = outputs.ge(0).logical_and(outputs.le(1)).all().item<bool>();
  if (is_unit && !likelihood.probs)
    throw argument_error(
        what +
        "values in [0, 1], as after a sigmoid, and bernoulli is of logits: say "
        "`likelihood` bernoulli:probs if these are probabilities, bernoulli:logits "
        "if they are logits");
  if (!is_unit && likelihood.probs.value_or(false))
    throw argument_error(
        what +
        "values outside [0, 1], and bernoulli:probs is of probabilities; bernoulli "
        "is of logits");
  if (!is_unit || *likelihood.probs) return {};
  return {"the decoder's outputs all lie in [0, 1], and are taken for logits"};
}

/// Says the shape of what a decoder makes of a row, which must be a function of that row, of finite
/// values that the likelihood takes.
void find_shape(const torch::jit::Module& module, const at::TensorOptions& options,
                const std::string& where, ModelDescription& model,
                const DecoderLikelihood& likelihood) {
  constexpr int64_t kRows = 64;
  at::Generator rng = make_generator(0);
  const at::Tensor z = at::empty({kRows, model.latent}, at::kFloat).normal_(0, 1, rng);
  const at::Tensor together = decoded(module, z, options, where);
  const at::Tensor again = decoded(module, z, options, where);
  const at::Tensor alone = decoded(module, z.slice(0, 0, 1), options, where);
  const std::string what = where + ": '" + decoder_of(module) + "' makes ";
  if (!together.isfinite().all().item<bool>())
    throw data_error(what + "values that are not finite of a draw from N(0, I)");
  const double size = together.abs().max().item<double>();
  if ((together - again).abs().max().item<double>() > 1e-6 * (1 + size))
    throw data_error(
        what +
        "other values at every call: is a latent drawn inside, as in encoder and decoder "
        "in one? Write the decoder alone");
  if ((together[0] - alone[0]).abs().max().item<double>() > 1e-4 * (1 + size))
    throw data_error(what + "other values of a row where others stand beside it");
  model.warnings = check_outputs(together, likelihood, what);
  model.data_shape = together.sizes().slice(1).vec();
}

/// True if `encode` gives another mean at every call. One that fails says so when it is asked for.
bool draws_inside(const LatentModel& model) {
  std::vector<int64_t> shape = model.description().data_shape;
  shape.insert(shape.begin(), 2);
  at::Generator rng = make_generator(0);
  const at::Tensor x = at::empty(shape, at::kFloat).bernoulli_(0.5, rng);
  try {
    const at::Tensor mean = model.encode(x, {})->loc, again = model.encode(x, {})->loc;
    return !at::allclose(mean, again);
  } catch (const Error&) {
    return false;
  }
}

/// What 'encode' of a module of another program makes of data [B, ...].
Vae::Posterior encoded(const torch::jit::Module& module, const at::Tensor& x,
                       const at::TensorOptions& options, const std::string& where) {
  const auto q =
      of_file(where, "'encode' fails", [&] { return call_method(module, "encode", {x}, options); });
  if (q.size() != 2)
    throw data_error(where + ": 'encode' returns " + std::to_string(q.size()) +
                     " tensors, not mean and log-variance");
  return {q[0], q[1]};
}

std::shared_ptr<const LatentModel> plain_model(const torch::jit::Module& module,
                                               const std::string& where,
                                               const at::TensorOptions& options,
                                               const ScriptOptions& asked) {
  const c10::NoGradGuard no_grad;
  if (asked.likelihood.empty())
    throw argument_error(where +
                         ": TorchScript that does not say what it is; say `likelihood` bernoulli "
                         "or gaussian:SD, or write it with crais.export(\"name.pt\", ...)");
  if (!module.find_method(decoder_of(module)))
    throw data_error(where + ": has no method 'decode' or 'forward'");
  const DecoderLikelihood said = parse_decoder_likelihood(asked.likelihood);
  ModelDescription d;
  d.name = where.substr(where.rfind('/') + 1);
  d.kind = kPlainScript;
  d.set_likelihood(said.likelihood);
  d.latent = asked.latent > 0 ? asked.latent : find_latent(module, options, where);
  find_shape(module, options, where, d, said);
  DecoderFunctions functions;
  functions.likelihood = said.likelihood;
  functions.decode = [=, gives_probs = said.probs.value_or(false)](const at::Tensor& z) {
    const at::Tensor made = decoded(module, z, options, where);
    return gives_probs ? logits_of(made) : made;
  };
  if (module.find_method("encode"))
    functions.encode = [=](const at::Tensor& x) { return encoded(module, x, options, where); };
  auto model = decoder_model(d, functions, {options.device(), "torchscript", where},
                             /*has_forces=*/false);
  if (functions.encode && draws_inside(*model))
    throw data_error(
        where +
        ": 'encode' gives another mean at every call: is a latent drawn inside? It has "
        "to return mean and log-variance");
  return model;
}

}  // namespace

std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file, at::Device device,
                                                     at::ScalarType dtype,
                                                     const ScriptOptions& script) {
  const std::string where = file.where();
  torch::jit::setGraphExecutorOptimize(false);  // what it specialises costs more than it brings
  torch::jit::ExtraFilesMap extra{{kExtra, ""}};
  torch::jit::Module module = of_file(where, "cannot be loaded as TorchScript", [&] {
    std::istringstream bytes(file.bytes);
    torch::jit::Module loaded = torch::jit::load(bytes, device, extra);
    loaded.eval();
    loaded.to(dtype);
    for (const at::Tensor& parameter : loaded.parameters()) parameter.set_requires_grad(false);
    return loaded;
  });
  const at::TensorOptions options = at::device(device).dtype(dtype);
  if (extra.at(kExtra).empty()) return plain_model(module, where, options, script);
  ModelManifest manifest = read_manifest(extra.at(kExtra), where + ": extra/" + kExtra);
  manifest.model.kind = "TorchScript";
  ModelManifest described = manifest;
  std::vector<std::string>& names = described.model.functions;
  // Nothing measured forces in bfloat16: they pay where products take nearly all of the time.
  described.forces_pay = false;
  const bool has_forces = dtype == at::kFloat && (device.is_cpu() || device.is_cuda());
  std::erase(names, kJointForces);
  if (has_forces) names.emplace_back(kJointForces);
  auto model =
      std::make_shared<FunctionModel>(described, functions_of(module, names, where, options),
                                      FunctionPlace{device, "torchscript", where});
  check_values(manifest, *model, where);
  return model;
}

}  // namespace crais
