#include "models/function_model.h"

#include <utility>

#include "models/mlp_model.h"

namespace crais {
namespace {

constexpr const char* kWhere = "the model in memory";

class FunctionModel : public ManifestModel {
 public:
  FunctionModel(ModelManifest manifest, ModelFunctions functions, at::Device device)
      : ManifestModel(std::move(manifest), kWhere),
        functions_(std::move(functions)),
        device_(device) {}

  std::string evaluator() const override { return "pytorch"; }

 private:
  std::vector<at::Tensor> call(const std::string& name,
                               std::vector<at::Tensor> inputs) const override {
    for (at::Tensor& input : inputs) input = input.to(device_);
    return functions_(name, inputs);
  }

  ModelFunctions functions_;
  at::Device device_;
};

}  // namespace

std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device) {
  manifest.model.kind = "in memory";
  if (manifest.vae) return std::make_shared<MlpModel>(std::move(manifest), kWhere);
  return std::make_shared<FunctionModel>(std::move(manifest), std::move(functions), device);
}

}  // namespace crais
