// A latent model in memory, whose functions somebody else computes: Python, say.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/model_manifest.h"

namespace crais {

/// Calls the function `name` of the manifest: "joint" and "prior" return values and gradients. Rows
/// of inputs come on the model's device. Threads call it side by side.
using ModelFunctions = std::function<std::vector<at::Tensor>(
    const std::string& name, const std::vector<at::Tensor>& inputs)>;

/// A model of MLPs is computed from its weights: nothing calls its functions. What the functions
/// throw passes through.
std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device);

}  // namespace crais
