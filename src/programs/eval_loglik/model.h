// The model that eval-loglik evaluates: a checkpoint of train-vae, or an exported model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/target.h"
#include "models/checkpoint.h"
#include "models/latent_model.h"
#include "models/script_model.h"
#include "targets/decoder_posterior.h"

namespace crais {

/// A model, ready for a device. Immutable: threads may share it.
class EvalModel {
 public:
  /// The model's part of run.json: a key, and a value that identifies the model.
  using Record = std::pair<std::string, nlohmann::json>;

  /// `options` are the device and type of the particles.
  EvalModel(std::shared_ptr<const LatentModel> model, const at::TensorOptions& options,
            Record record);

  const ModelDescription& description() const { return model_->description(); }
  /// The posteriors of data [P, num_values()] float32 on the CPU. `latents` [P,D] are those of
  /// simulated data, `labels` [P, ...] those for a conditional model; else undefined.
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& labels) const;
  int64_t num_draws() const { return model_->num_draws(); }
  /// As LatentModel::draw, but with data [1, num_values()].
  LatentModel::Draws draw(uint64_t seed, int64_t i) const;

  /// Replicates of p(z), if it is a function of the user, which may have any integral. Null if it
  /// is a normal, or another density that is normalised by its formula.
  std::shared_ptr<const Target> prior() const;

  /// The evaluator of an anneal with these forces (TunedState): "fused-avx512", "aten", "aoti".
  std::string evaluator(std::optional<at::ScalarType> forces) const {
    return evaluator_of(*model_, fused_.get(), forces);
  }

  const Record& record() const { return record_; }

 private:
  std::shared_ptr<const LatentModel> model_;
  at::TensorOptions options_;
  Record record_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: no fused evaluator
};

EvalModel checkpoint_model(const Checkpoint& checkpoint, at::Device device, at::ScalarType dtype);

/// A model of functions, identified by `digest`.
EvalModel latent_eval_model(std::shared_ptr<const LatentModel> model, const std::string& digest,
                            const at::TensorOptions& options);

/// Opens a checkpoint of train-vae, an exported model, or a decoder in TorchScript, whose outputs
/// `options` explain. Throws as ModelFile and the readers of these files do; kArgument for a device
/// or type that the model cannot have, and for an option of a model that describes itself.
EvalModel open_model(const std::string& path, const ScriptOptions& options, at::Device device,
                     at::ScalarType dtype);

/// Checks that the model's p(z) integrates to 1. Any other integral shifts log p(x) by its
/// logarithm, and nothing else would show that. Throws Error kData if the integral clearly differs
/// from 1 and `is_accepted` is false. Returns a warning if the integral is in doubt; "" if it is 1,
/// or if the prior has a formula. Cost: a thousand evaluations of p(z) for each of 16 replicates;
/// the decoder does not run.
std::string check_prior(const EvalModel& model, bool is_accepted, int64_t threads);

}  // namespace crais
