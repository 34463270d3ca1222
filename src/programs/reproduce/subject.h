// What an experiment estimates: a named density, or images under a VAE.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "kernels/fused_decoder.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/images.h"
#include "programs/reproduce/tasks.h"

namespace crais {

class Subject {
 public:
  virtual ~Subject() = default;

  /// A task that ends with estimate_cell, for flags of estimate-logz or eval-loglik: these programs
  /// can repeat each number. If `for_plans`, only its pilots count. With `particles`, the result
  /// has so many of the first run, of equal weight, and the masses of modes in each run.
  virtual Task task(const std::string& flags, uint64_t seed, bool for_plans,
                    int64_t particles) const = 0;
  /// log Z [] or log p(x) [N], nats; undefined if it is not known.
  virtual at::Tensor truth() const { return {}; }
  /// The masses [M] of the target's modes, and `count` exact draws [count,D]; undefined if they are
  /// not known.
  virtual at::Tensor masses() const { return {}; }
  virtual at::Tensor exact_draws(int64_t /*count*/) const { return {}; }
  /// True if the problems differ: repetitions of an experiment are its seeds, not its problems.
  virtual bool has_images() const { return false; }
};

/// Replicates of a named target. `estimate-logz TARGET FLAGS --problems REPLICATES --seed SEED`
/// repeats the result of a row, with `--witness none` for AIS and `--base prior` if no base is
/// named.
class DensitySubject : public Subject {
 public:
  DensitySubject(const ExperimentOptions& options, std::string target, int64_t replicates);
  Task task(const std::string& flags, uint64_t seed, bool for_plans,
            int64_t particles) const override;
  at::Tensor truth() const override;
  at::Tensor masses() const override;
  at::Tensor exact_draws(int64_t count) const override;

 private:
  std::shared_ptr<const Target> make(at::ScalarType dtype) const;

  ExperimentOptions options_;
  std::string name_;
  int64_t replicates_;
  std::shared_ptr<const Target> target_;
};

class VaeSubject : public Subject {
 public:
  /// The first `count` test images under the checkpoint of the options.
  VaeSubject(const ExperimentOptions& options, int64_t count);
  /// Simulated images of a VAE with two latents, whose log p(x) a grid of points^2 latents finds.
  VaeSubject(const ExperimentOptions& options, const Vae& vae, int64_t count, int64_t points);
  Task task(const std::string& flags, uint64_t seed, bool for_plans,
            int64_t particles) const override;
  at::Tensor truth() const override { return truth_; }
  bool has_images() const override { return true; }
  const EvalImages& images() const { return images_; }

 private:
  void set_model(const Vae& vae);
  /// log p(x) [N] by the trapezoid rule, which is exact to rounding once posteriors are wider than
  /// the spacing.
  at::Tensor integrated(int64_t points) const;

  ExperimentOptions options_;
  nlohmann::json identity_;  // of model and images, in the keys of tasks
  Vae vae_;
  std::shared_ptr<const LatentModel> model_;  // of vae_
  std::shared_ptr<const FusedDecoder> fused_;
  EvalImages images_;
  at::Tensor truth_;
};

/// A VAE with two latents and side x side Bernoulli pixels (side a divisor of 28), trained on drawn
/// digits for some seconds. Without hidden layers its posteriors are log-concave. With hidden
/// layers they have several modes, and plateaus where the units saturate.
Vae small_vae(int64_t side, const std::vector<int64_t>& hidden);

}  // namespace crais
