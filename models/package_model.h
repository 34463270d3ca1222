/// @file
/// Exported models: .pt2 packages that crais.export of Python writes.
#pragma once

#include <memory>
#include <string>

#include "models/latent_model.h"
#include "models/model_file.h"

namespace crais {

/// Loads a package and repeats its self-check: stored inputs must have the values and gradients
/// that eager PyTorch found. A package is native code, and loading it runs it: load only what you
/// trust. What it says of itself is checked before that.
///
/// A model of MLPs is weights and no code: it runs under every LibTorch, and in `dtype`.
///
/// Throws Error: kNoInput if the file is missing; kData if it is damaged, of another version of
/// PyTorch, another kind of machine, or fails its self-check; kArgument for a device that it was
/// not compiled for. Each message says how to export again.
std::shared_ptr<const LatentModel> read_package_model(const ModelFile& file,
                                                      at::Device device = at::kCPU,
                                                      at::ScalarType dtype = at::kFloat);

}  // namespace crais
