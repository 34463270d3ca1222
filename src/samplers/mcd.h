// Monte Carlo Diffusion: annealed importance sampling by unadjusted Langevin moves whose reversals
// are learned.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "core/problem.h"
#include "samplers/importance.h"
#include "samplers/score_network.h"

namespace crais {

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
