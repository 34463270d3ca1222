// What experiments with VAEs are made of: a checkpoint, its images, and variants to compare.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/fused_decoder.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/images.h"
#include "programs/reproduce/experiment.h"
#include "programs/reproduce/variant.h"

namespace crais {

class VaeExperiment {
 public:
  /// The first `count` test images, or as many simulated ones.
  VaeExperiment(const ExperimentOptions& options, int64_t count, bool simulated);
  /// Simulated images of a VAE at hand.
  VaeExperiment(const ExperimentOptions& options, const Vae& vae, int64_t count);

  /// One task per variant and seed; seeds count from `first_seed`.
  std::vector<VariantResult> run(const std::string& label, const std::vector<Variant>& variants,
                                 int64_t seeds, uint64_t first_seed = 0) const;

  /// What `flags` leave open with an `@`, chosen such that the plans of `run` with as many seeds
  /// have `steps` transitions.
  MatchedPlans match(const std::string& flags, int64_t steps, int64_t seeds) const;

  /// Evaluations that --base laplace takes for one image.
  int64_t laplace_cost() const;
  const EvalImages& images() const { return images_; }
  /// What model and images are known by, in the keys of tasks.
  const nlohmann::json& identity() const { return identity_; }
  const Vae& vae() const { return vae_; }

 private:
  Task task(const std::string& flags, uint64_t seed) const;

  ExperimentOptions options_;
  nlohmann::json identity_;
  Vae vae_;
  std::shared_ptr<const LatentModel> model_;  // of vae_
  std::shared_ptr<const FusedDecoder> fused_;
  EvalImages images_;
};

}  // namespace crais
