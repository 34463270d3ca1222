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

/// The line of a LibTorch error that states the cause: the last line for the interpreter.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  const std::string mark = "RuntimeError: ";
  if (const auto at = text.rfind(mark); at != std::string::npos)
    text = text.substr(at + mark.size());
  return text.substr(0, text.find('\n'));
}

/// Calls LibTorch. Its exceptions become errors of the file.
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

/// Calls a method and returns its result, a tensor or a tuple of tensors. Moves inputs to the
/// module's device.
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

/// Renames `_convolution`, which traces contain and autocast on the CPU ignores, to names that
/// autocast knows.
void name_convolutions(const torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules())
    for (const torch::jit::Method& method : part.get_methods()) {
      std::shared_ptr<torch::jit::Graph> graph = method.graph();
      torch::jit::graph_rewrite_helper::replaceConvolutionWithAtenConv(graph);
    }
}

/// The functions of a module that crais.export wrote, which returns values without gradients.
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
    const auto call = [&](std::vector<at::Tensor> arguments) {
      return of_file(where, "'" + name + "' fails",
                     [&] { return call_method(module, method_of(name), arguments, options); });
    };
    if (name != "joint" && name != kJointForces && name != "prior") return call(inputs);
    const auto value = [&](const at::Tensor& z) {
      std::vector<at::Tensor> arguments = inputs;
      arguments[0] = z;
      const at::Tensor result = call(arguments)[0];
      if (c10::GradMode::is_enabled() && !result.requires_grad())
        throw data_error(where + ": '" + name + "' does not depend on z");
      return result;
    };
    return name == kJointForces ? with_short_gradient(inputs[0], value)
                                : with_gradient(inputs[0], value);
  };
}

/// The decoding method of a module of another program.
std::string decoder_of(const torch::jit::Module& module) {
  return module.find_method("decode") ? "decode" : "forward";
}

/// The output [B, ...] of a module of another program at latents [B,D].
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

/// Finds the number of latents that a decoder takes, among the sizes of its weights.
int64_t find_latent(const torch::jit::Module& module, const at::TensorOptions& options,
                    const std::string& where) {
  std::set<int64_t> sizes = {1};  // a size of 1 may also fit by broadcasting alone
  for (const at::Tensor& weight : module.parameters())
    sizes.insert(weight.sizes().begin(), weight.sizes().end());
  std::vector<int64_t> candidates;
  for (const int64_t dim : sizes) {
    if (dim < 1 || dim > kMostLatents) continue;
    try {
      decoded(module, at::zeros({2, dim}), options, where);
      candidates.push_back(dim);
    } catch (const Error&) {  // the decoder does not take this number
    }
  }
  const std::string decoder = where + ": its '" + decoder_of(module) + "' takes ";
  if (candidates.empty())
    throw argument_error(decoder + "no z [B,D] with D a size of its weights; give D as `latent`");
  if (candidates.size() > 1)
    throw argument_error(decoder + "z [B,D] of D = " + std::to_string(candidates[0]) + ", " +
                         std::to_string(candidates[1]) +
                         " and perhaps more; choose one by `latent`");
  const int64_t made = decoded(module, at::zeros({1, candidates[0]}), options, where).numel();
  if (made == candidates[0] && made > 1)
    throw argument_error(decoder + "as many numbers (" + std::to_string(made) +
                         ") as it returns, like an encoder and decoder in one; save the decoder "
                         "alone, or, if it is a decoder, give `latent` " +
                         std::to_string(made));
  return candidates[0];
}

/// Throws if outputs contradict the likelihood. Returns warnings about doubtful outputs.
std::vector<std::string> check_outputs(const at::Tensor& outputs,
                                       const DecoderLikelihood& likelihood,
                                       const std::string& what) {
  if (!likelihood.likelihood.is_of_logits()) return {};
  const bool is_unit = outputs.ge(0).logical_and(outputs.le(1)).all().item<bool>();
  if (is_unit && !likelihood.probs)
    throw argument_error(
        what +
        "values in [0, 1], as after a sigmoid, but bernoulli takes logits; give `likelihood` "
        "bernoulli:probs for probabilities, bernoulli:logits for logits");
  if (!is_unit && likelihood.probs.value_or(false))
    throw argument_error(
        what +
        "values outside [0, 1], but bernoulli:probs takes probabilities; bernoulli takes logits");
  if (!is_unit || *likelihood.probs) return {};
  return {"the decoder's outputs all lie in [0, 1], and are used as logits"};
}

/// Finds the shape of a decoder's output for one row. The output must be a function of that row,
/// with finite values that the likelihood allows.
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
    throw data_error(what + "values that are not finite at a draw from N(0, I)");
  const double size = together.abs().max().item<double>();
  if ((together - again).abs().max().item<double>() > 1e-6 * (1 + size))
    throw data_error(
        what +
        "different values at each call, as if a latent were drawn inside; save the decoder alone");
  if ((together[0] - alone[0]).abs().max().item<double>() > 1e-4 * (1 + size))
    throw data_error(what + "different values for a row if other rows are in the batch");
  model.warnings = check_outputs(together, likelihood, what);
  model.data_shape = together.sizes().slice(1).vec();
}

/// True if `encode` returns another mean at each call. If it fails, false: the failure is reported
/// when it is used.
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

/// The result of 'encode' of a module of another program for data [B, ...].
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
                         ": TorchScript that does not describe itself; give `likelihood` bernoulli "
                         "or gaussian:SD, or save it with crais.export(\"name.pt\", ...)");
  if (!module.find_method(decoder_of(module)))
    throw data_error(where + ": has no method 'decode' or 'forward'");
  const DecoderLikelihood likelihood = parse_decoder_likelihood(asked.likelihood);
  ModelDescription d;
  d.name = where.substr(where.rfind('/') + 1);
  d.kind = kPlainScript;
  d.set_likelihood(likelihood.likelihood);
  d.latent = asked.latent > 0 ? asked.latent : find_latent(module, options, where);
  find_shape(module, options, where, d, likelihood);
  DecoderFunctions functions;
  functions.likelihood = likelihood.likelihood;
  functions.decode = [=, gives_probs = likelihood.probs.value_or(false)](const at::Tensor& z) {
    const at::Tensor made = decoded(module, z, options, where);
    return gives_probs ? logits_of(made) : made;
  };
  if (module.find_method("encode"))
    functions.encode = [=](const at::Tensor& x) { return encoded(module, x, options, where); };
  auto model = decoder_model(d, functions, {options.device(), "torchscript", where},
                             /*has_forces=*/false);
  if (functions.encode && draws_inside(*model))
    throw data_error(where +
                     ": 'encode' returns a different mean at each call, as if a latent were drawn "
                     "inside; it must return mean and log-variance");
  return model;
}

}  // namespace

std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file, at::Device device,
                                                     at::ScalarType dtype,
                                                     const ScriptOptions& script) {
  const std::string where = file.where();
  torch::jit::setGraphExecutorOptimize(false);  // its specialisation costs more than it saves
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
  // bfloat16 forces were not measured here: they are faster only if products take nearly all time.
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
