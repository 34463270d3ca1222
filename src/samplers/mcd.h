// Monte Carlo Diffusion: annealed importance sampling by unadjusted Langevin moves with learned
// reversals, and how they are learned.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "core/plan_error.h"
#include "core/problem.h"
#include "models/network.h"
#include "samplers/importance.h"

namespace crais {

struct ScoreNetworkShape {
  int64_t dim = 0;
  int64_t num_steps = 0;
  int64_t hidden = 128;
  int64_t embedding = 16;  // numbers that encode the step for the network
  bool linear = false;     // adds a linear term to the network, see McdParameters

  /// Sizes of the network's tensors, in the order of its constructor.
  std::vector<std::vector<int64_t>> tensor_sizes() const;
};

/// A residual MLP: h = act(U x + V tau_k), h += act(W h) twice, out = O h, with a learned vector
/// tau_k of step k. O starts at zero, so the output does too.
class ScoreNetwork {
 public:
  /// Takes `tensors` of the shape's sizes; they may be views of one vector.
  explicit ScoreNetwork(const std::vector<at::Tensor>& tensors);

  /// x [M,P,K,D], with step k at index k - 1 -> [M,P,K,D]. Cost: no target evaluations.
  at::Tensor forward(const at::Tensor& x) const;

  /// Sets starting values in place, for tensors of the shape's sizes: Glorot-uniform matrices,
  /// standard normal embeddings, zero for biases and the last layer.
  static void initialise(const std::vector<at::Tensor>& tensors, at::Generator& rng);

 private:
  at::Tensor steps_;         // [M,E] tau
  at::Tensor steps_weight_;  // [H,E]
  std::vector<Layer> layers_;
};

/// The learned parameters as views of one vector (gradients flow back to it). They use the whitened
/// coordinates e of a problem's base, so problems with different bases can share them.
struct McdParameters {
  /// `flat` has `count(shape)` entries.
  McdParameters(const ScoreNetworkShape& shape, const at::Tensor& flat);

  static int64_t count(const ScoreNetworkShape& shape);
  /// The start of learning: the problem's own base, equal steps of beta, one step size, and the
  /// reversals of annealed importance sampling.
  static at::Tensor initial(const ScoreNetworkShape& shape, double step_size,
                            const at::TensorOptions& options, at::Generator& rng);

  at::Tensor loc, log_sd;  // [D] of the base q0, a diagonal Gaussian in e
  at::Tensor betas;        // [M+1], 0 to exactly 1: cumsum(softmax)
  at::Tensor step_sizes;   // [M] epsilon_k
  // s_theta(k, e) = grad log gamma_k(e) + c(k, e) with the correction c = network(k, e) +
  // of_score_k grad log gamma_k(e) + of_place_k e. The score depends on the problem and the network
  // does not: the linear term learns the common lag of all problems directly.
  at::Tensor of_score, of_place;  // [M,D]: a number for each move plus one for each coordinate;
  // undefined unless shape.linear
  ScoreNetwork network;

 private:
  McdParameters(const ScoreNetworkShape& shape, const std::vector<at::Tensor>& parts);
};

/// Log-weights of K chains of each problem, [P,K] float64, nats. E[w] = Z for all parameters.
/// [Doucet, Grathwohl, Matthews & Strathmann 2022]
///
///   e_0 ~ q0,  F_k = N(e_{k-1} + eps_k grad log gamma_k(e_{k-1}), 2 eps_k I),
///   B_k = N(e_k + eps_k grad log gamma_k(e_k) + 2 eps_k c(k, e_k), 2 eps_k I),
///   log w = log gamma(e_M) - log q0(e_0) + sum_k log B_k(e_{k-1} | e_k) - log F_k(e_k | e_{k-1}),
///
/// with gamma_k on the geometric path from q0 to gamma. With xi_k the noise of F_k, the k-th term
/// is -r.xi_k - |r|^2 / 2 for r = sqrt(eps_k / 2) (grad log gamma_k(e_{k-1}) + grad log
/// gamma_k(e_k) + 2 c(k, e_k)), without a division by eps. Corrections of zero give AIS with
/// unadjusted Langevin moves.
///
/// If the parameters require a gradient and grad mode is on, the log-weights require one too,
/// through noise, moves and grad log gamma. Autograd then differentiates grad log gamma, so
/// Target::log_density must be twice differentiable. A chain that has diverged has a log-weight
/// that is not finite. Cost: 1 + M evaluations a particle; twice that with a gradient, because the
/// backward pass takes a Hessian-vector product for each. Throws Error kArgument if the density has
/// no autograd graph.
LogWeights mcd_log_weights(const Problem& problem, const McdParameters& parameters,
                           int64_t num_particles, at::Generator& rng);

struct McdTrainingOptions {
  double step_size = 0.01;    // initial epsilon of every move
  int64_t iterations = 2000;  // limit
  int64_t batch = 128;        // chains an iteration, spread over the problems; with more
  // problems, this many problems of one chain each
  double learning_rate = 0.01;      // Adam's; falls to 0 over the second half
  int64_t validate_every = 50;      // iterations
  int64_t validation_chains = 256;  // spread over the problems, with equal noise each time
  int64_t patience = 0;             // validations without improvement before stopping; 0: no limit
};

struct TrainedMcd {
  at::Tensor flat;                    // see McdParameters
  double initial_elbo = 0, elbo = 0;  // nats, mean over problems, on the validation noise
  int64_t iterations = 0;
  Cost cost;
};

/// Maximises E[log w] <= log Z over all McdParameters by reparameterised gradients and Adam. Keeps
/// the parameters with the best validation, which may be those at the start. The norm of the
/// gradient is clipped to a multiple of its own running mean: one wild chain must not spoil Adam's
/// moments.
///
/// If there are more problems than `batch`, as many as `validation_chains` but at most a quarter
/// are held out for validation, and each iteration draws from the rest.
///
/// Streams of `seed` alone determine the result. Cost: 2 (1 + M) evaluations for each chain of an
/// iteration, 1 + M for each chain of a validation. Throws DivergedError if the bound is not finite
/// at the start or at an iteration.
TrainedMcd train_mcd(const Problem& problem, const ScoreNetworkShape& shape,
                     const McdTrainingOptions& options, uint64_t seed);

}  // namespace crais
