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

/// Facts about a TorchScript module of another program that the module does not state.
struct ScriptOptions {
  std::string likelihood;  ///< p(x | decoder's output): "bernoulli" (of logits), "bernoulli:probs",
                           ///< "bernoulli:logits" (even if all lie in [0, 1]), "gaussian:SD"
  int64_t latent = 0;      ///< D; 0: the one size of its weights that the decoder takes
};

/// The description's name for a module that crais.export did not write.
inline constexpr const char* kPlainScript = "plain TorchScript";

/// Loads a TorchScript module. Autograd computes the gradients, so an evaluation is slower than
/// with a package. A module written by crais.export as "name.pt" describes itself, and its
/// self-check is repeated.
///
/// For any other module, `decode`, or else `forward`, maps z [B,D] to logits or means [B, ...] of
/// x, row by row. `encode`, if there is one, maps x [B, ...] to mean and log-variance [B,D] of z.
/// The prior is N(0, I), and `options` give the likelihood.
///
/// Throws Error kData if the file is damaged, fails its self-check, or lacks such functions;
/// kArgument if the options are incomplete.
std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file,
                                                     at::Device device = at::kCPU,
                                                     at::ScalarType dtype = at::kFloat,
                                                     const ScriptOptions& options = {});

}  // namespace crais
