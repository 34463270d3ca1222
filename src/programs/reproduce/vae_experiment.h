// The common parts of experiments with VAEs: a checkpoint, its images, and variants to compare.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/fused_decoder.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/images.h"
#include "programs/reproduce/variant.h"

namespace crais {

class VaeExperiment : public Subject {
 public:
  /// The first `count` test images under the checkpoint.
  VaeExperiment(const ExperimentOptions& options, int64_t count);
  /// Simulated images of a given VAE.
  VaeExperiment(const ExperimentOptions& options, const Vae& vae, int64_t count);

  /// Cost of --base laplace for one image, in evaluations.
  int64_t laplace_cost() const;
  const EvalImages& images() const { return images_; }
  /// A description: "The first 64 images of t10k-images (static:0), checkpoint FILE".
  std::string described() const;
  /// The identity of model and images in the keys of tasks.
  const nlohmann::json& identity() const { return identity_; }
  const Vae& vae() const { return vae_; }

 private:
  void set_model(const Vae& vae);
  /// A task whose pilots use only the first images.
  Task task(const std::string& flags, uint64_t seed, bool for_plans) const override;

  nlohmann::json identity_;
  Vae vae_;
  std::shared_ptr<const LatentModel> model_;  // of vae_
  std::shared_ptr<const FusedDecoder> fused_;
  EvalImages images_;
};

}  // namespace crais
