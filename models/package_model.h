/// @file
/// Exported models: .pt2 packages written by crais.export in Python.
#pragma once

#include <memory>
#include <string>

#include "models/latent_model.h"
#include "models/model_file.h"

namespace crais {

/// Loads a package and repeats its self-check: at the stored inputs, the model must reproduce the
/// values and gradients of eager PyTorch. A package is native code, and loading runs it: load only
/// packages that you trust. The description is checked first.
///
/// A model of MLPs has weights and no code: it runs with every LibTorch, and in `dtype`.
///
/// Throws Error: kNoInput if the file is missing; kData if it is damaged, of another version of
/// PyTorch or another kind of machine, or fails its self-check; kArgument for a device that it was
/// not compiled for. Each message says how to export the model again.
std::shared_ptr<const LatentModel> read_package_model(const ModelFile& file,
                                                      at::Device device = at::kCPU,
                                                      at::ScalarType dtype = at::kFloat);

}  // namespace crais
