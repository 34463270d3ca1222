// Latent models whose functions are computed elsewhere: by Python, native code, TorchScript, a C++
// module, or ATen from a network's weights.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/model_manifest.h"

namespace crais {

/// Calls the function `name` of the manifest. "joint" and "prior" return values and gradients; so
/// does "joint_bfloat16", whose gradients use products in bfloat16. Inputs are rows on the model's
/// device; labels are left out if there are none. Threads may call it at the same time. Exceptions
/// pass through.
using ModelFunctions = std::function<std::vector<at::Tensor>(
    const std::string& name, const std::vector<at::Tensor>& inputs)>;

/// The device and the evaluator of functions.
struct FunctionPlace {
  at::Device device;
  std::string evaluator;  // the name that LatentModel::evaluator returns
  std::string where;      // start of error messages
};

/// A model made of a manifest, functions, moments and draws. Throws Error kData if the result of a
/// function differs from the manifest.
class FunctionModel : public LatentModel {
 public:
  FunctionModel(ModelManifest manifest, ModelFunctions functions, FunctionPlace place);

  const ModelDescription& description() const override { return manifest_.model; }
  std::string evaluator() const override { return place_.evaluator; }
  int64_t batch() const override { return manifest_.batch; }
  Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const override;
  bool has_forces(at::ScalarType dtype) const override;
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

 private:
  /// Calls a function with the defined inputs. Results must be floating and of these shapes (an
  /// empty shape allows any).
  std::vector<at::Tensor> results(const std::string& function,
                                  const std::vector<at::Tensor>& inputs,
                                  const std::vector<std::vector<int64_t>>& shapes) const;
  Density density(const std::string& function, const std::vector<at::Tensor>& inputs) const;

  ModelManifest manifest_;
  ModelFunctions functions_;
  FunctionPlace place_;
};

/// A model of weights without code: an MLP decoder under N(0, I), and perhaps an encoder. Manual
/// ATen code evaluates it, on any device and for any floating type.
class NetworkModel : public FunctionModel {
 public:
  /// The model of a manifest's `vae`.
  NetworkModel(const ModelManifest& manifest, std::string where, at::Device device,
               at::ScalarType dtype);

  const DecoderNetwork* decoder() const override { return &decoder_; }
  bool is_network() const override { return true; }

 private:
  DecoderNetwork decoder_;  // on the model's device
};

/// The model of a VAE, on its device and of its type.
std::shared_ptr<const LatentModel> network_model(const Vae& vae);
/// The model of a checkpoint's weights, with the checkpoint's description.
std::shared_ptr<const LatentModel> network_model(const Checkpoint& checkpoint, at::Device device,
                                                 at::ScalarType dtype);

/// A model in memory. A model of MLPs is computed from its weights, in `dtype`, without calls of
/// its functions.
std::shared_ptr<const LatentModel> function_model(ModelManifest manifest, ModelFunctions functions,
                                                  at::Device device,
                                                  at::ScalarType dtype = at::kFloat);

/// A decoder under N(0, I) as functions of rows, with a named likelihood.
struct DecoderFunctions {
  /// Latents [B,D] -> logits (Bernoulli) or means (Gaussian), [B, ...]. Must be differentiable.
  std::function<at::Tensor(const at::Tensor& z)> decode;
  /// Data [B, ...] -> mean and log-variance of q(z | x), [B,D] each; empty without an encoder.
  std::function<Vae::Posterior(const at::Tensor& x)> encode;
  Likelihood likelihood;
};

/// Computes the function `name` of such a decoder, for data of that shape: the joint density by
/// autograd, Fisher weights, exact draws.
std::vector<at::Tensor> call_decoder(const DecoderFunctions& functions,
                                     const std::vector<int64_t>& data_shape,
                                     const std::string& name,
                                     const std::vector<at::Tensor>& inputs);

/// A model of these functions. `described` gives latents, shape and likelihood.
std::shared_ptr<const LatentModel> decoder_model(ModelDescription described,
                                                 DecoderFunctions functions, FunctionPlace place);

/// The value [B] of a function of z [B,D] with its gradient, by autograd. `function` receives z as
/// a leaf.
std::vector<at::Tensor> with_gradient(const at::Tensor& z,
                                      const std::function<at::Tensor(const at::Tensor&)>& function);

}  // namespace crais
