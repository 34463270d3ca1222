#include "models/function_model.h"

#include <utility>

namespace crais {
namespace {

class FunctionModel : public ManifestModel {
 public:
  FunctionModel(ModelManifest manifest, ModelFunctions functions, const at::TensorOptions& options)
      : ManifestModel(std::move(manifest), "the model in memory"),
        functions_(std::move(functions)),
        options_(options) {}

  std::string evaluator() const override { return "pytorch"; }

  Density joint(const at::Tensor& z, const at::Tensor& x) const override {
    return density("joint", {z, x});
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
    for (at::Tensor& input : inputs) input = input.to(options_);
    return functions_(name, inputs);
  }

  ModelFunctions functions_;
  at::TensorOptions options_;
};

}  // namespace

std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  const at::TensorOptions& options) {
  manifest.model.kind = "in memory";
  return std::make_shared<FunctionModel>(std::move(manifest), std::move(functions), options);
}

}  // namespace crais
