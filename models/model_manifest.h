// What an exported file says of itself: crais.export writes it, beside the code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "models/latent_model.h"
#include "models/network.h"
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

/// A latent model whose description, moments and draws are those of a manifest.
class ManifestModel : public LatentModel {
 public:
  const ModelDescription& description() const override { return manifest_.model; }
  int64_t batch() const override { return manifest_.batch; }
  /// Of files whose "joint" and "prior" return values and gradients.
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override;
  /// Of files with "joint_bfloat16".
  bool has_forces(at::ScalarType dtype) const override;
  bool forces_pay(at::ScalarType dtype) const override;
  Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                            at::ScalarType dtype) const override;
  std::optional<Density> prior(const at::Tensor& z) const override;
  std::optional<Posterior> encode(const at::Tensor& x, const at::Tensor& y) const override;
  std::optional<Output> output(const at::Tensor& z, const at::Tensor& y) const override;
  std::optional<Moments> prior_moments() const override;
  const DecoderNetwork* decoder() const override {
    return manifest_.decoder ? &*manifest_.decoder : nullptr;
  }
  int64_t num_draws() const override;
  Draws draw(uint64_t seed, int64_t i) const override;

 protected:
  ManifestModel(ModelManifest manifest, std::string where);
  const ModelManifest& manifest() const { return manifest_; }
  const std::string& where() const { return where_; }
  void set_likelihood(const Likelihood& of) { manifest_.model.set_likelihood(of); }
  /// Calls a function with those of the inputs that are defined: there may be no labels. Throws
  /// Error kData unless results are floating and of these shapes (an empty one: any).
  std::vector<at::Tensor> results(const std::string& function, std::vector<at::Tensor> inputs,
                                  const std::vector<std::vector<int64_t>>& shapes) const;

 private:
  virtual std::vector<at::Tensor> call(const std::string& function,
                                       std::vector<at::Tensor> inputs) const = 0;

  std::string where_;
  ModelManifest manifest_;
};

}  // namespace crais
