#include "models/function_model.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <utility>

#include "models/autocast.h"
#include "models/decoder_density.h"
#include "models/network_model.h"
#include "util/error.h"

namespace crais {
namespace {

constexpr const char* kWhere = "the model in memory";
constexpr const char* kJoint = "joint";
constexpr int64_t kRowsOfFunctions = 512;  // nobody measured how many are cheapest

class FunctionModel : public ManifestModel {
 public:
  FunctionModel(ModelManifest manifest, ModelFunctions functions, at::Device device,
                std::string evaluator, std::string where)
      : ManifestModel(std::move(manifest), std::move(where)),
        functions_(std::move(functions)),
        device_(device),
        evaluator_(std::move(evaluator)) {}

  std::string evaluator() const override { return evaluator_; }

 private:
  std::vector<at::Tensor> call(const std::string& name,
                               std::vector<at::Tensor> inputs) const override {
    for (at::Tensor& input : inputs) input = input.to(device_);
    return functions_(name, inputs);
  }

  ModelFunctions functions_;
  at::Device device_;
  std::string evaluator_;
};

/// log p(x, z) and its gradient, by autograd through the decoder.
std::vector<at::Tensor> joint_of(const DecoderFunctions& functions, const at::Tensor& z,
                                 const at::Tensor& x) {
  const c10::AutoGradMode with_grad(true);
  const at::Tensor leaf = z.detach().requires_grad_(true);
  const at::Tensor output = functions.decode(leaf).flatten(1);
  const at::Tensor value =
      functions.likelihood.log_prob(x.flatten(1), output) + log_standard_normal(leaf);
  return {value.detach(), torch::autograd::grad({value.sum()}, {leaf})[0].to(z.scalar_type())};
}

/// The values of a pass in the decoder's own type, beside a pass by autocast.
std::vector<at::Tensor> joint_with_forces(const DecoderFunctions& functions, const at::Tensor& z,
                                          const at::Tensor& x) {
  const c10::NoGradGuard no_grad;
  const at::Tensor value =
      functions.likelihood.log_prob(x.flatten(1), functions.decode(z).flatten(1)) +
      log_standard_normal(z);
  const Autocast shorter(z.device(), at::kBFloat16);
  return {value, joint_of(functions, z, x)[1]};
}

std::vector<at::Tensor> call_decoder(const DecoderFunctions& functions,
                                     const std::vector<int64_t>& shape, const std::string& name,
                                     const std::vector<at::Tensor>& inputs) {
  if (name == kJoint) return joint_of(functions, inputs[0], inputs[1]);
  if (name == kJointForces) return joint_with_forces(functions, inputs[0], inputs[1]);
  if (name == "encode") {
    const Vae::Posterior q = functions.encode(inputs[0]);
    return {q.mean, q.log_var};
  }
  const at::Tensor output = functions.decode(inputs[0]).flatten(1);
  if (name == "output") return {output, functions.likelihood.fisher(output)};
  if (name != "simulate") throw internal_error("a decoder has no '" + name + "'");
  std::vector<int64_t> rows = {output.size(0)};
  rows.insert(rows.end(), shape.begin(), shape.end());
  return {inputs[0], functions.likelihood.draw(output, inputs[1]).view(rows)};
}

}  // namespace

std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device, at::ScalarType dtype) {
  manifest.model.kind = "in memory";
  if (manifest.vae)
    return std::make_shared<NetworkModel>(std::move(manifest), kWhere, device, dtype);
  return std::make_shared<FunctionModel>(std::move(manifest), std::move(functions), device,
                                         "pytorch", kWhere);
}

std::shared_ptr<const LatentModel> decoder_model(ModelDescription described,
                                                 DecoderFunctions functions, at::Device device,
                                                 const std::string& evaluator,
                                                 const std::string& where, bool has_forces) {
  ModelManifest manifest;
  manifest.model = std::move(described);
  manifest.uniforms = manifest.model.num_values();
  manifest.batch = kRowsOfFunctions;
  manifest.model.functions = {kJoint, "output", "simulate"};
  if (functions.encode) manifest.model.functions.emplace_back("encode");
  if (has_forces) manifest.model.functions.emplace_back(kJointForces);
  const auto call = [functions = std::move(functions), shape = manifest.model.data_shape](
                        const std::string& name, const std::vector<at::Tensor>& inputs) {
    return call_decoder(functions, shape, name, inputs);
  };
  return std::make_shared<FunctionModel>(std::move(manifest), call, device, evaluator, where);
}

}  // namespace crais
