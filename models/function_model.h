// Latent models whose functions somebody else computes: Python, TorchScript, a C++ module.
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

/// A model in memory. One of MLPs is computed from its weights, in `dtype`: nothing calls its
/// functions. What the functions throw passes through.
std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device,
                                                  at::ScalarType dtype = at::kFloat);

/// A decoder under N(0, I) as functions of rows, with a likelihood that needs no code.
struct DecoderFunctions {
  /// Latents [B,D] -> logits (Bernoulli) or means (Gaussian), [B, ...]. Differentiable.
  std::function<at::Tensor(const at::Tensor& z)> decode;
  /// Data [B, ...] -> mean and log-variance of q(z | x), [B,D] each; empty: no encoder.
  std::function<Vae::Posterior(const at::Tensor& x)> encode;
  Likelihood likelihood;
};

/// Its joint density by autograd, Fisher weights and exact draws. `described` says latents, shape
/// and likelihood; `evaluator` is what LatentModel::evaluator says, `where` begins errors. With
/// `has_forces`, gradients may be in bfloat16, by autocast around a pass forward and back.
std::shared_ptr<const LatentModel> decoder_model(ModelDescription described,
                                                 DecoderFunctions functions, at::Device device,
                                                 const std::string& evaluator,
                                                 const std::string& where, bool has_forces);

}  // namespace crais
