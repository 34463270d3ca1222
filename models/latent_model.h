/// @file
/// A generative model of data x with latents z, as functions of batches: the content of an exported
/// file.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/network.h"

namespace crais {

/// The labels y of a conditional model p(x | y).
struct LabelDescription {
  std::vector<int64_t> shape;  // of one label; empty: one number
  at::ScalarType dtype = at::kFloat;
  int64_t low = 0, high = 0;  // range of whole numbers that the model knows
};

/// The largest number of latents.
inline constexpr int64_t kMostLatents = 1 << 16;

/// The description of a model, without its functions.
struct ModelDescription {
  std::string name;                 // for messages and reports
  std::string kind;                 // kind of file: "exported", "TorchScript"
  int64_t latent = 0;               // D
  std::vector<int64_t> data_shape;  // of one datum
  std::string likelihood = "log_joint";
  std::string prior = "standard-normal";
  std::string binarisation;                // of the training data; "" if the file does not say
  std::optional<double> low, high;         // range of data; absent: any finite number
  std::optional<double> step;              // data are multiples of it above `low`
  bool is_mass = false;                    // p(x) is a probability of 8-bit data, not a density
  std::vector<std::string> functions;      // "joint", "encode", "output", ...
  std::optional<LabelDescription> labels;  // of a model p(x | y)
  std::vector<std::string> warnings;       // reasons why its numbers may mislead

  /// Sets the name, and the range and step of data that the likelihood allows.
  void set_likelihood(const Likelihood& of);
  /// The number of values in one datum.
  int64_t num_values() const;
  bool has(const std::string& function) const;
};

/// A model as functions of rows: row i of every result depends only on row i of the arguments.
/// float32 on the CPU. Immutable: threads may call it at the same time. `y` holds the labels of a
/// conditional model [B, ...], and is undefined for other models.
class LatentModel {
 public:
  /// A log density [B], nats, with its gradient with respect to z [B,D].
  struct Density {
    at::Tensor value, grad;
  };
  /// q(z | x): mean [B,D], and standard deviations [B,D] or a lower-triangular root [B,D,D].
  struct Posterior {
    at::Tensor loc, scale;
  };
  /// The decoder's output at z, [B,M], and the Fisher information of each entry, [B,M] > 0.
  struct Output {
    at::Tensor value, weight;
  };
  /// Exact draws of p(x, z), [B, ...] and [B,D], given labels [B, ...] if the model has labels.
  struct Draws {
    at::Tensor data, latents, labels;
  };
  /// A normal with the moments of another prior: its mean [D] and a root [D,D] of its covariance.
  struct Moments {
    at::Tensor loc, scale_tril;
  };

  virtual ~LatentModel() = default;

  virtual const ModelDescription& description() const = 0;
  /// The name of the evaluator: "aoti", "torchscript".
  virtual std::string evaluator() const = 0;
  /// The number of rows in a call at which a row costs least.
  virtual int64_t batch() const = 0;

  /// log p(x, z) at z [B,D] and x [B, ...]. Cost: one evaluation a row, the unit of cost.
  virtual Density joint(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y) const = 0;
  /// True if `joint_with_forces` supports this type, which is then faster than `joint`.
  virtual bool has_forces(at::ScalarType /*dtype*/) const { return false; }
  /// The values of `joint`, up to float32 rounding, with gradients whose products are in `dtype`.
  /// Each gradient is a function of its row. Requires has_forces(dtype).
  virtual Density joint_with_forces(const at::Tensor& z, const at::Tensor& x, const at::Tensor& y,
                                    at::ScalarType /*dtype*/) const {
    return joint(z, x, y);
  }
  /// q(z | x), if there is an encoder.
  virtual std::optional<Posterior> encode(const at::Tensor& /*x*/, const at::Tensor& /*y*/) const {
    return {};
  }
  /// The decoder's output, if the model has it. Cost: half an evaluation a row.
  virtual std::optional<Output> output(const at::Tensor& /*z*/, const at::Tensor& /*y*/) const {
    return {};
  }
  /// log p(z), if the prior is not N(0, I). Cost: none; the decoder does not run.
  virtual std::optional<Density> prior(const at::Tensor& /*z*/) const { return {}; }
  virtual std::optional<Moments> prior_moments() const { return {}; }

  /// The number of exact draws: 0 if there are none, the largest int64 if each draw is new.
  virtual int64_t num_draws() const { return 0; }
  /// Draw i [1, ...], a function of (seed, i) alone. Requires i < num_draws().
  virtual Draws draw(uint64_t /*seed*/, int64_t /*i*/) const { return {}; }

  /// The layers of a decoder under N(0, I) that determines log p(x, z): a fused evaluator computes
  /// it faster than `joint`. On the CPU in float32, unless is_network().
  virtual const DecoderNetwork* decoder() const { return nullptr; }
  /// True if the model is its weights: `decoder` then has dense layers on the model's device and of
  /// its type, and models/decoder_density.h computes everything from them.
  virtual bool is_network() const { return false; }
};

/// Throws Error kData that names the first datum and entry without a probability under the model's
/// likelihood: NaN, below `low`, above `high`, or not a multiple of `step`.
void check_support(const ModelDescription& model, const at::Tensor& data, const std::string& where);

/// Stored labels [N, ...] in the model's form. Whole numbers [N] become one-hot rows if the model
/// takes rows of floats. Throws Error kData that names the first label outside the model's range,
/// or the difference of the shapes.
at::Tensor labels_for(const LabelDescription& labels, const at::Tensor& stored,
                      const std::string& where);

}  // namespace crais
