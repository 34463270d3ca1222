/// @file
/// A generative model of data x with latents z, as functions of batches: what an exported file
/// holds.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/network.h"

namespace crais {

/// What a conditional model p(x | y) is conditioned on.
struct LabelDescription {
  std::vector<int64_t> shape;  // of one label; empty: one number
  at::ScalarType dtype = at::kFloat;
  int64_t low = 0, high = 0;  // of whole numbers: what the model knows
};

/// The name of a likelihood that stands for none: the decoder was exported without one, and
/// exp(-|x - f(z)|^2) is there to have a gradient.
inline constexpr const char* kSquaredError = "squared-error";

/// No model has more latents.
inline constexpr int64_t kMostLatents = 1 << 16;

/// What is known of a model beside its functions.
struct ModelDescription {
  std::string name;                 // for people
  std::string kind;                 // of file: "exported", "TorchScript"
  int64_t latent = 0;               // D
  std::vector<int64_t> data_shape;  // of one datum
  std::string likelihood = "log_joint";
  std::string prior = "standard-normal";
  std::optional<double> noise_sd;          // of a normal likelihood with one noise for all values
  std::string binarisation;                // as training saw the data; "" if the file does not say
  std::optional<double> low, high;         // what data may be; nothing: anything finite
  std::optional<double> step;              // data are multiples of it above `low`
  bool is_mass = false;                    // p(x) is a probability of 8-bit data, not a density
  std::vector<std::string> functions;      // "joint", "encode", "output", ...
  std::optional<LabelDescription> labels;  // of a model p(x | y)
  std::vector<std::string> warnings;       // why its numbers may not mean what one thinks

  /// The name, and which data it has a probability for.
  void set_likelihood(const Likelihood& of);
  /// Numbers in one datum.
  int64_t num_values() const;
  bool has(const std::string& function) const;
};

/// Functions of rows: row i of every result depends on row i of the arguments alone. float32 on the
/// CPU. Immutable; threads call it side by side. `y` holds the labels of a conditional model
/// [B, ...], and is undefined for others.
class LatentModel {
 public:
  /// A log density [B], nats, with its gradient with respect to z [B,D].
  struct Density {
    at::Tensor value, grad;
  };
  /// q(z | x): mean [B,D] with standard deviations [B,D] or a lower-triangular root [B,D,D].
  struct Posterior {
    at::Tensor loc, scale;
  };
  /// What the decoder makes of z, [B,M], and the Fisher information of each entry, [B,M] > 0.
  struct Output {
    at::Tensor value, weight;
  };
  /// Exact draws of p(x, z): [B, ...] and [B,D]; given labels [B, ...] where there are any.
  struct Draws {
    at::Tensor data, latents, labels;
  };
  /// The normal that stands for a prior which is none: its mean [D] and a root [D,D].
  struct Moments {
    at::Tensor loc, scale_tril;
  };

  virtual ~LatentModel() = default;

  virtual const ModelDescription& description() const = 0;
  /// What computes: "aoti", "torchscript".
  virtual std::string evaluator() const = 0;
  /// Rows of a call with which a row costs least.
  virtual int64_t batch() const = 0;

  /// log p(x, z) of z [B,D] and x [B, ...]. The cost unit: one evaluation a row.
  virtual Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const = 0;
  /// True if `joint_with_forces` is there for this type.
  virtual bool has_forces(at::ScalarType /*dtype*/) const { return false; }
  /// True if it is faster than `joint`, as far as the model says and this processor can.
  virtual bool forces_pay(at::ScalarType /*dtype*/) const { return false; }
  /// The values of `joint`, to float32's rounding, and gradients whose products are in `dtype`: a
  /// function of the row as well. Requires has_forces(dtype).
  virtual Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                                    at::ScalarType /*dtype*/) const {
    return joint(z, x, y);
  }
  /// q(z | x), if there is an encoder.
  virtual std::optional<Posterior> encode(const at::Tensor& /*x*/, const at::Tensor& /*y*/) const {
    return {};
  }
  /// The decoder's output, if the file has it. Cost: half an evaluation a row.
  virtual std::optional<Output> output(const at::Tensor& /*z*/, const at::Tensor& /*y*/) const {
    return {};
  }
  /// log p(z), if the prior is not N(0, I). Cost: none, beside a decoder's.
  virtual std::optional<Density> prior(const at::Tensor& /*z*/) const { return {}; }
  virtual std::optional<Moments> prior_moments() const { return {}; }

  /// How many exact draws there can be: 0 for none, the largest int64 where each is made anew.
  virtual int64_t num_draws() const { return 0; }
  /// Draw i [1, ...], decided by (seed, i) alone. Requires i < num_draws().
  virtual Draws draw(uint64_t /*seed*/, int64_t /*i*/) const { return {}; }

  /// The layers of a decoder under N(0, I), where log p(x, z) takes nothing else: a fused evaluator
  /// computes it faster than `joint`. On the CPU in float32, unless is_network().
  virtual const DecoderNetwork* decoder() const { return nullptr; }
  /// True if the model is its weights: `decoder` are dense layers on the model's device and of its
  /// type, from which models/decoder_density.h computes all.
  virtual bool is_network() const { return false; }
  /// The same decoder with normal noise of standard deviation `sd` about the mean of x, in place of
  /// its likelihood; null where the model cannot.
  virtual std::shared_ptr<const LatentModel> with_noise(double /*sd*/) const { return nullptr; }
};

/// Throws Error kData, naming the first datum and entry that the model's likelihood has no
/// probability for, if there is one: NaN, below `low`, above `high`, no multiple of `step`.
void check_support(const ModelDescription& model, const at::Tensor& data, const std::string& where);

/// Stored labels [N, ...] as the model takes them; whole numbers [N] become one-hot rows where it
/// takes rows of floats. Throws Error kData, naming the first label that is not in the model's
/// range, or how the shapes differ.
at::Tensor labels_for(const LabelDescription& labels, const at::Tensor& stored,
                      const std::string& where);

}  // namespace crais
