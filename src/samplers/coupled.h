/// @file
/// Draws by Markov chains, and a bound on how far from exact they are.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "core/problem.h"

namespace crais {

/// True if the target makes exact draws.
bool has_exact_draws(const Target& target);

/// Two chains for each of P x K pairs.
struct Pairs {
  Particles first, second;
  at::Tensor met;  // [P,K] bool: the chains are at one point, and stay together
};

/// One move of every chain: Langevin proposals of step sizes eps [P,K,1] with a Metropolis test
/// (MALA), or, where eps is infinite, draws of the base. A pair takes as many equal proposals as
/// its two normals allow, and reflected ones otherwise; one uniform number decides both tests. Each
/// chain alone moves as without the other. Cost: 1 evaluation a chain, all in one call.
///                                                     [Jacob, O'Leary & Atchade 2020]
Pairs moved_together(const Problem& problem, const Pairs& pairs, const at::Tensor& eps,
                     at::Generator& rng);

/// Draws of P targets, from K pairs of chains each.
struct CoupledDraws {
  at::Tensor z;         // [P,K,D]
  at::Tensor moves;     // [P,K] float64: until the chains of a pair met; inf: they stayed apart
  at::Tensor distance;  // [P,K] float64: the mean bounds the total variation distance; inf: unknown
  Cost cost;
};

/// The first chain of each pair moves `lag` times from `first` [P,K,D]: that is its draw. Then both
/// move together, the second chain from `second` [P,K,D], until they meet. If both starts have one
/// law, a draw is as far from exact as the mean of `distance` at most:
///   |law of the draw - target| <= E[ceil(moves / lag)] - 1.     [Biswas, Jacob & Vanetti 2019]
/// A pair still apart after 4 lags, and 256 moves, stops.
/// Steps are `step_size` [P], a small part of it, which frees chains that are stuck, or infinite,
/// in a share `base_share` of moves, by a coin for each move of a pair.
/// Cost: for a pair, `lag` + 2 evaluations, and 2 for each move together.
CoupledDraws coupled_draws(const Problem& problem, const at::Tensor& step_size, double base_share,
                           const at::Tensor& first, const at::Tensor& second, int64_t lag,
                           at::Generator& rng);

}  // namespace crais
