// Trains a VAE epoch by epoch. The state that later epochs depend on can be saved and restored.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
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
  int64_t epochs = 100;   // total, for the decay and `finished`
  int64_t patience = 0;   // epochs without a better validation before stopping; 0: no limit
  int64_t kl_warmup = 0;  // epochs over which the weight of the KL term rises to 1
  uint64_t seed = 0;
  Binarisation binarisation;
};

/// The metrics of one epoch, in nats per image. `bound` is the objective (the ELBO or the IWAE
/// bound).
struct EpochMetrics {
  struct Means {
    double bound = 0, elbo = 0, kl = 0;
  };
  int64_t epoch = 0;  // counted from 1
  double learning_rate = 0;
  double kl_weight = 1;
  Means train;  // during the updates, with the epoch's own noise
  Means validation;
  double seconds = 0;
};

void to_json(nlohmann::json& object, const EpochMetrics& metrics);
void from_json(const nlohmann::json& object, EpochMetrics& metrics);

/// Progress within an epoch.
struct TrainProgress {
  int64_t images_done = 0;
  int64_t images = 0;
  double bound = 0;  // mean so far in this epoch
};

/// All that later epochs depend on, besides data and options. Tensors on the CPU.
struct TrainerState {
  at::Tensor weights;       // all parameters in one vector, in Trainer's private layout
  at::Tensor best_weights;  // of the epoch with the best validation bound
  at::Tensor exp_avg;       // Adam's moments
  at::Tensor exp_avg_sq;
  int64_t steps = 0;  // steps of Adam
  std::vector<EpochMetrics> metrics;
};

/// A trainer. Every random number comes from a stream of (seed, purpose, epoch), so an epoch is a
/// function of the state before it: a run that is stopped and restored ends with the same bits.
class Trainer {
 public:
  /// `vae` gives the initial weights. The images are copied to `device`.
  Trainer(const Vae& vae, const TrainerOptions& options, const Images& train,
          const Images& validation, at::Device device = at::kCPU);
  ~Trainer();

  /// Runs one epoch. Throws Error kArgument if the objective is no longer finite.
  const EpochMetrics& run_epoch(const std::function<void(const TrainProgress&)>& report = {});

  int64_t epoch() const { return static_cast<int64_t>(metrics_.size()); }
  bool finished() const;
  const std::vector<EpochMetrics>& metrics() const { return metrics_; }
  /// The metrics of the epoch whose weights `best` has; null before the first.
  const EpochMetrics* best_metrics() const;

  /// The current VAE, copied to the CPU.
  Vae current() const;
  Vae best() const;

  TrainerState state() const;
  /// Throws Error kData if the state does not belong to this training.
  void restore(const TrainerState& state);

 private:
  struct Data;

  void check(const TrainerState& state) const;
  EpochMetrics::Means train(double kl_weight, const std::function<void(const TrainProgress&)>&);
  EpochMetrics::Means validate() const;
  Vae unpacked(const at::Tensor& flat) const;

  TrainerOptions options_;
  at::Device device_;
  Vae vae_;          // leaves that share the storage of flat_; gradients share that of its gradient
  at::Tensor flat_;  // one vector: a step of Adam is then a handful of operations
  at::Tensor best_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
  std::unique_ptr<Data> data_;
  std::vector<EpochMetrics> metrics_;
};

/// The settings that determine a run's weights, as JSON. A resumed run must repeat them.
nlohmann::json training_settings(const TrainerOptions& options, const VaeArchitecture& architecture,
                                 const std::string& data, const std::string& data_md5);

/// Writes atomically: a kill at any moment leaves the old state or the new one.
void write_training_state(const std::filesystem::path& path, const TrainerState& state,
                          const nlohmann::json& settings);

/// Throws Error: kNoInput if the file is missing, kData if it is damaged, kArgument that names the
/// first setting that differs from `settings`.
TrainerState read_training_state(const std::filesystem::path& path, const nlohmann::json& settings);

}  // namespace crais
