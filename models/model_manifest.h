// What an exported file says of itself: crais.export writes it, beside the code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "models/latent_model.h"
#include "models/vae.h"

namespace crais {

/// How a message ends that a new export mends.
inline constexpr const char* kExportAgain = "; export the model again with crais.export";

/// The function of models that have gradients in bfloat16.
inline constexpr const char* kJointForces = "joint_bfloat16";

/// The description and the arrays of an exported model, checked: ranges, shapes, finite numbers,
/// and that they belong together.
struct ModelManifest {
  ModelDescription model;
  std::string torch;                   // that wrote it, "2.13.0"
  std::string machine;                 // "x86_64"
  std::string device = "cpu";          // that its code is for; "cuda"
  std::vector<std::string> cpu_flags;  // instructions that its code may use
  int64_t uniforms = 0;                // that a draw takes
  int64_t batch = 1;                   // rows with which a row costs least
  bool forces_pay = false;             // its gradient in bfloat16 is faster where it was written
  SafeTensors arrays;
  std::optional<Vae> vae;                 // what a model of MLPs is: such a file holds no code
  std::optional<DecoderNetwork> decoder;  // of any model that has one of known layers, beside code

  /// One that must be there.
  const at::Tensor& array(const std::string& name) const { return *arrays.find(name); }
};

/// `bytes` are a safetensors file whose metadata describe a model. Throws Error kData, one line
/// that begins with `where`.
ModelManifest read_manifest(const std::string& bytes, const std::string& where);

/// Repeats the self-check: stored inputs must have the values and gradients that eager PyTorch
/// found, gradients in bfloat16 where there are any too. Throws Error kData.
void check_values(const ModelManifest& manifest, const LatentModel& model,
                  const std::string& where);

}  // namespace crais
