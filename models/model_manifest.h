// The description of an exported file, which crais.export writes beside the code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "models/latent_model.h"
#include "models/vae.h"

namespace crais {

/// The end of messages about faults that a new export fixes.
inline constexpr const char* kExportAgain = "; export the model again with crais.export";

/// The function of models with gradients in bfloat16.
inline constexpr const char* kJointForces = "joint_bfloat16";

/// The description and the arrays of an exported model. Checked: ranges, shapes, finite numbers,
/// and consistency.
struct ModelManifest {
  ModelDescription model;
  std::string torch;                   // version that wrote the file, "2.13.0"
  std::string machine;                 // "x86_64"
  std::string device = "cpu";          // device of its code, or "cuda"
  std::vector<std::string> cpu_flags;  // processor instructions that its code may use
  int64_t uniforms = 0;                // uniform numbers for one draw
  int64_t batch = 1;                   // rows in a call at which a row costs least
  SafeTensors arrays;
  std::optional<Vae> vae;                 // the weights of a model of MLPs, which has no code
  std::optional<DecoderNetwork> decoder;  // of any model with a decoder of known layers; has code

  /// The array of that name, which must exist.
  const at::Tensor& array(const std::string& name) const { return *arrays.find(name); }
};

/// Reads a safetensors file whose metadata describe a model. Throws Error kData, one line that
/// begins with `where`.
ModelManifest read_manifest(const std::string& bytes, const std::string& where);

/// Repeats the self-check: at the stored inputs, the model must reproduce the values and gradients
/// of eager PyTorch, and the gradients in bfloat16 if it has them. Throws Error kData.
void check_values(const ModelManifest& manifest, const LatentModel& model,
                  const std::string& where);

}  // namespace crais
