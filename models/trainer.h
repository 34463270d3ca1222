// Trains a VAE epoch by epoch; all that a later epoch depends on can be saved and restored.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "data/binarisation.h"
#include "data/images.h"
#include "models/objective.h"
#include "models/vae.h"

namespace torch::optim {
class Adam;
}

namespace crais {

struct TrainerOptions {
  Objective objective;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  Decay decay;
  int64_t batch = 128;
  int64_t epochs = 100;   // for the decay and `finished`
  int64_t patience = 0;   // epochs without a better validation before stopping; 0: never
  int64_t kl_warmup = 0;  // epochs over which the KL term's weight climbs to 1
  uint64_t seed = 0;
  Binarisation binarisation;
};

/// One epoch, in nats per image. `bound` is the objective (the ELBO or the IWAE bound).
struct EpochMetrics {
  struct Means {
    double bound = 0, elbo = 0, kl = 0;
  };
  int64_t epoch = 0;  // the first is 1
  double learning_rate = 0;
  double kl_weight = 1;
  Means train;  // while the weights changed, from the epoch's own noise
  Means validation;
  double seconds = 0;
};

void to_json(nlohmann::json& object, const EpochMetrics& metrics);
void from_json(const nlohmann::json& object, EpochMetrics& metrics);

/// Within an epoch.
struct TrainProgress {
  int64_t images_done = 0;
  int64_t images = 0;
  double bound = 0;  // mean so far in this epoch
};

/// All that the epochs to come depend on, besides data and options. Tensors on the CPU.
struct TrainerState {
  at::Tensor weights;       // every parameter in one vector, in a layout private to Trainer
  at::Tensor best_weights;  // of the epoch with the best validation bound
  at::Tensor exp_avg;       // Adam's moments
  at::Tensor exp_avg_sq;
  int64_t steps = 0;  // of Adam
  std::vector<EpochMetrics> metrics;
};

/// Every random number is drawn from a stream of (seed, purpose, epoch), so an epoch is a function
/// of the state before it: stopped and restored, training ends with the same bits.
class Trainer {
 public:
  /// `vae` gives the first weights. The images are copied to `device`.
  Trainer(const Vae& vae, const TrainerOptions& options, const Images& train,
          const Images& validation, at::Device device = at::kCPU);
  ~Trainer();

  /// Throws Error kArgument if the objective is no longer finite.
  const EpochMetrics& run_epoch(const std::function<void(const TrainProgress&)>& report = {});

  int64_t epoch() const { return static_cast<int64_t>(metrics_.size()); }
  bool finished() const;
  const std::vector<EpochMetrics>& metrics() const { return metrics_; }
  /// The metrics of the epoch whose weights `best` has; null before the first.
  const EpochMetrics* best_metrics() const;

  /// Copies on the CPU.
  Vae current() const;
  Vae best() const;

  TrainerState state() const;
  /// Throws Error kData if the state is not one that this training has come through.
  void restore(const TrainerState& state);

 private:
  struct Data;

  void check(const TrainerState& state) const;
  EpochMetrics::Means train(double kl_weight, const std::function<void(const TrainProgress&)>&);
  EpochMetrics::Means validate() const;
  Vae unpacked(const at::Tensor& flat) const;

  TrainerOptions options_;
  at::Device device_;
  Vae vae_;          // leaves that share flat_'s storage, their gradients that of flat_'s
  at::Tensor flat_;  // one vector, so that a step of Adam is a handful of operations
  at::Tensor best_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
  std::unique_ptr<Data> data_;
  std::vector<EpochMetrics> metrics_;
};

}  // namespace crais
