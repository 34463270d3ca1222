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

  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override {
    return density("joint", {z, x, y});
  }
  std::optional<Density> prior(const at::Tensor& z) const override {
    if (!description().has("prior")) return {};
    return density("prior", {z});
  }

 private:
  Density density(const std::string& name, std::vector<at::Tensor> inputs) const {
    const int64_t rows = inputs[0].size(0);
    const auto found =
        checked(name, call(name, std::move(inputs)), {{rows}, {rows, description().latent}});
    return {found[0], found[1]};
  }

  std::vector<at::Tensor> call(const std::string& name,
                               std::vector<at::Tensor> inputs) const override {
    std::vector<at::Tensor> defined;
    for (const at::Tensor& input : inputs)
      if (input.defined()) defined.push_back(input.to(device_));
    return functions_(name, defined);
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
