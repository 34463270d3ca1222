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

/// What a TorchScript module of another program does not state.
struct ScriptOptions {
  std::string
      likelihood;      ///< p(x | decoder's output): one of parse_likelihood, of logits or means,
                       ///< or "bernoulli:probs", of probabilities
  int64_t latent = 0;  ///< D
};

/// The kind of a module that crais.export did not write.
inline constexpr const char* kPlainScript = "plain TorchScript";

/// Loads a TorchScript module, which runs its code. Autograd computes the gradients, so an
/// evaluation is slower than with a package. A module of crais.export ("name.pt") describes itself,
/// and its self-check is repeated.
///
/// For any other module, `decode`, or else `forward`, maps z [B,D] to logits or means [B, ...] of
/// x, row by row. `encode`, if there is one, maps x [B, ...] to mean and log-variance [B,D] of z.
/// The prior is N(0, I), and `options` give the rest.
///
/// Throws Error kData if the file is damaged or fails its checks; kArgument for incomplete options.
std::shared_ptr<const LatentModel> read_script_model(const ModelFile& file,
                                                     at::Device device = at::kCPU,
                                                     at::ScalarType dtype = at::kFloat,
                                                     const ScriptOptions& options = {});

}  // namespace crais
