/// @file
/// Exported models: TorchScript files (.pt), which every LibTorch from 1.13 on loads.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>

#include "models/latent_model.h"

namespace crais {

/// True if the file is a TorchScript archive. Nothing in it runs.
bool is_script_model(const std::filesystem::path& path);

/// Loads a TorchScript module that crais.export wrote as "name.pt", and repeats its self-check. Its
/// functions are methods; autograd gives the gradients, so an evaluation is slower than a
/// package's.
///
/// Throws Error kData if the file is damaged, says nothing of itself, or fails its self-check.
std::shared_ptr<const LatentModel> read_script_model(const std::filesystem::path& path,
                                                     at::Device device = at::kCPU,
                                                     at::ScalarType dtype = at::kFloat);

}  // namespace crais
