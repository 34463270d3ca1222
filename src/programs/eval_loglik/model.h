// What eval-loglik evaluates: a checkpoint of train-vae, or an exported model.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/target.h"
#include "models/checkpoint.h"
#include "models/latent_model.h"
#include "models/script_model.h"
#include "models/state_dict.h"
#include "targets/decoder_posterior.h"

namespace crais {

/// A model, ready for a device. Immutable; threads share it.
class EvalModel {
 public:
  /// Its part of run.json: the key, and what identifies it.
  using Record = std::pair<std::string, nlohmann::json>;

  /// `options` are the device and type of its particles.
  EvalModel(std::shared_ptr<const LatentModel> model, const at::TensorOptions& options,
            Record record);

  const ModelDescription& description() const { return description_; }
  /// The posteriors of data [P, num_values()] float32 on the CPU. `latents` [P,D] of simulated
  /// data, `labels` [P, ...] of a conditional model's, else undefined.
  std::shared_ptr<const Target> posterior(const at::Tensor& data, const at::Tensor& latents,
                                          const at::Tensor& labels) const;
  int64_t num_draws() const { return model_->num_draws(); }
  /// As LatentModel has them, but for data [1, num_values()].
  LatentModel::Draws draw(uint64_t seed, int64_t i) const;

  /// Its decoder with normal noise of standard deviation `sd` about the mean of x, in place of its
  /// likelihood: the squared error is then minus the log-likelihood, up to constants. Throws Error
  /// kArgument where the model does not say what that mean is.
  EvalModel with_noise(double sd) const;

  /// Replicates of its p(z), where that is a function of somebody's and may integrate to anything;
  /// null where it is a normal, or another density that is one by its formula.
  std::shared_ptr<const Target> prior() const;

  /// What computes an anneal with such forces (TunedState): "fused-avx512", "aten", "aoti".
  std::string evaluator(std::optional<at::ScalarType> forces) const {
    return evaluator_of(*model_, fused_.get(), forces);
  }

  const Record& record() const { return record_; }

 private:
  std::shared_ptr<const LatentModel> model_;
  at::TensorOptions options_;
  Record record_;
  std::shared_ptr<const FusedDecoder> fused_;  // null: none
  ModelDescription description_;
  std::optional<double> own_noise_;  // of a model whose description has another
};

EvalModel checkpoint_model(const Checkpoint& checkpoint, at::Device device, at::ScalarType dtype);

/// A model of functions; `digest` identifies it.
EvalModel latent_eval_model(std::shared_ptr<const LatentModel> model, const std::string& digest,
                            const at::TensorOptions& options);

/// What files of other programs do not say of themselves.
struct ForeignOptions {
  StateDictOptions state_dict;
  int64_t latent = 0;           // of TorchScript; 0: found by trying the sizes of its weights
  std::set<std::string> given;  // flags, as given_of_table has them

  /// What TorchScript is told of it.
  ScriptOptions script() const { return {state_dict.likelihood, latent}; }
};

/// By what the file holds, whatever its name: an exported model, a checkpoint of ours, or a
/// state_dict or a TorchScript module that `options` help to read. `notice` says how one of these
/// was understood. Throws as the readers of these files do; kArgument for a device or type that the
/// model cannot have, and for an option that does nothing for this file.
EvalModel open_model(const std::string& path, const ForeignOptions& options, at::Device device,
                     at::ScalarType dtype, std::string& notice);

/// Whether the model's p(z) integrates to 1. Whatever it integrates to moves log p(x) by as much,
/// and nothing else would show it. Throws Error kData where it clearly does not, and nobody accepts
/// that. Returns why its integral is in doubt; "" where all is well, or where the prior is one that
/// has a formula.
/// Cost: a thousand evaluations of p(z) for each of 16 replicates, and none of the decoder.
std::string check_prior(const EvalModel& model, bool is_accepted, int64_t threads);

}  // namespace crais
