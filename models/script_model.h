/// @file
/// Models in TorchScript files (.pt), which every LibTorch loads.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/latent_model.h"
#include "models/model_file.h"

namespace crais {

/// What TorchScript of another program does not say of itself.
struct ScriptOptions {
  std::string likelihood;  ///< p(x | decoder's output): "bernoulli" (of logits), "bernoulli:probs",
                           ///< "bernoulli:logits" (even if all lie in [0, 1]), "gaussian:SD"
  int64_t latent = 0;      ///< D; 0: the one size of its weights that the decoder takes
};

/// How the description calls a module that is no work of crais.export.
inline constexpr const char* kPlainScript = "plain TorchScript";

/// Loads a TorchScript module; autograd gives the gradients, so an evaluation is slower than a
/// package's. One that crais.export wrote as "name.pt" says what it is, and repeats its self-check.
///
/// Of any other, `decode`, or else `forward`, takes z [B,D] to logits or means [B, ...] of x, row
/// by row, and `encode`, if there is one, takes x [B, ...] to mean and log-variance [B,D] of z. The
/// prior is N(0, I), and `options` say the likelihood.
///
/// Throws Error kData if the file is damaged, fails its self-check, or has no such functions; and
/// kArgument if the options must say more.
std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file,
                                                     at::Device device = at::kCPU,
                                                     at::ScalarType dtype = at::kFloat,
                                                     const ScriptOptions& options = {});

}  // namespace crais
