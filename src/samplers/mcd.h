// Monte Carlo Diffusion: annealed importance sampling by unadjusted Langevin moves whose reversals
// are learned.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "core/problem.h"
#include "models/network.h"
#include "samplers/importance.h"

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

/// What is learned, seen as views of one vector (gradients flow back to it). It lives in the
/// whitened coordinates e of a problem's base, so that problems with bases of their own share it.
struct McdParameters {
  /// `flat` has as many entries as `count(shape)` says.
  McdParameters(const ScoreNetworkShape& shape, const at::Tensor& flat);

  static int64_t count(const ScoreNetworkShape& shape);
  /// Where learning starts: the problem's own base, equal steps of beta, one step size, and the
  /// reversals of annealed importance sampling.
  static at::Tensor initial(const ScoreNetworkShape& shape, double step_size,
                            const at::TensorOptions& options, at::Generator& rng);

  at::Tensor loc, log_sd;  // [D] of the base q0, a diagonal Gaussian in e
  at::Tensor betas;        // [M+1], 0 to exactly 1: cumsum(softmax)
  at::Tensor step_sizes;   // [M] epsilon_k
  // s_theta(k, e) = grad log gamma_k(e) + c(k, e) with the correction
  // c = network(k, e) + of_score_k grad log gamma_k(e) + of_place_k e. The score knows its problem,
  // which the network does not: how far all lag behind is learned at once.
  at::Tensor of_score, of_place;  // [M,D], a number a move plus one a coordinate; undefined unless
                                  // shape.linear
  ScoreNetwork network;

 private:
  McdParameters(const ScoreNetworkShape& shape, const std::vector<at::Tensor>& parts);
};

/// Log-weights of K chains of each problem, [P,K] float64, nats, with E[w] = Z whatever the
/// parameters are:                          [Doucet, Grathwohl, Matthews & Strathmann 2022]
///
///   e_0 ~ q0,  F_k = N(e_{k-1} + eps_k grad log gamma_k(e_{k-1}), 2 eps_k I),
///   B_k = N(e_k + eps_k grad log gamma_k(e_k) + 2 eps_k c(k, e_k), 2 eps_k I),
///   log w = log gamma(e_M) - log q0(e_0) + sum_k log B_k(e_{k-1} | e_k) - log F_k(e_k | e_{k-1}),
///
/// gamma_k on the geometric path from q0 to gamma. With xi_k the noise of F_k the k-th term is
/// -r.xi_k - |r|^2 / 2 for r = sqrt(eps_k / 2) (grad log gamma_k(e_{k-1}) + grad log gamma_k(e_k) +
/// 2 c(k, e_k)): nothing is divided by eps. Corrections of zero are plain AIS with unadjusted
/// Langevin moves.
///
/// Where the parameters require a gradient and grad mode is on, so do the log-weights, through
/// noise, moves and grad log gamma, which autograd then differentiates: Target::log_density is to
/// be differentiable twice. Not finite where a chain has diverged.
/// Cost: 1 + M evaluations per particle; twice that with a gradient, for the backward pass takes a
/// Hessian-vector product of each. Throws Error kArgument where the density has no graph.
LogWeights mcd_log_weights(const Problem& problem, const McdParameters& parameters,
                           int64_t num_particles, at::Generator& rng);

}  // namespace crais
