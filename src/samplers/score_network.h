// s(k, x): what a learned reversal adds to the score of the annealed density.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "models/vae.h"

namespace crais {

struct ScoreNetworkShape {
  int64_t dim = 0;
  int64_t num_steps = 0;
  int64_t hidden = 128;
  int64_t embedding = 16;  // numbers that tell the network which step it is
  bool linear = false;     // a linear term beside the network, see McdParameters

  /// Sizes of the tensors that the network is made of, in the order in which it takes them.
  std::vector<std::vector<int64_t>> tensor_sizes() const;
};

/// A residual MLP: h = act(U x + V tau_k), h += act(W h) twice, out = O h, where tau_k is a learned
/// vector of step k. O starts at zero, and with it the output.
class ScoreNetwork {
 public:
  /// Takes `tensors` of the shape's sizes; views of a longer vector will do.
  explicit ScoreNetwork(const std::vector<at::Tensor>& tensors);

  /// x [M,P,K,D], of step k at index k - 1 -> [M,P,K,D]. No target evaluations.
  at::Tensor forward(const at::Tensor& x) const;

  /// Starting values for tensors of the shape's sizes: Glorot-uniform matrices, standard normal
  /// embeddings, zero for biases and the last layer. In place.
  static void initialise(const std::vector<at::Tensor>& tensors, at::Generator& rng);

 private:
  at::Tensor steps_;         // [M,E] tau
  at::Tensor steps_weight_;  // [H,E]
  std::vector<Layer> layers_;
};

}  // namespace crais
