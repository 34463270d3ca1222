// Products of blocks of 32 x 32 on AMX: bfloat16 numbers, split in parts, or bytes.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"
#include "kernels/tile_unit.h"

namespace crais {
namespace {

constexpr int64_t kBlock = kTileBlock;  // rows of particles, columns of weights: two tiles each way
constexpr int64_t kBlockSums = kBlock * kBlock;
constexpr int64_t kParts = 2;  // of a particle's numbers: each the rounded rest of those before

/// Numbers of a row of particles in a block, and so many rows of weights meet them.
template <class Number>
constexpr int64_t kRowNumbers = 2 * kTileBlock / static_cast<int64_t>(sizeof(Number));
template <class Number>
constexpr int64_t kBlockNumbers = kBlock* kRowNumbers<Number>;

/// Blocks that so many units make, as columns of weights and as a row of particles.
inline int64_t blocks(int64_t units) { return (units + kBlock - 1) / kBlock; }
template <class Number>
int64_t row_blocks(int64_t units) {
  return (units + kRowNumbers<Number> - 1) / kRowNumbers<Number>;
}

/// Products of tiles in a step of `multiply`, by the parts of weights: particles have as many as
/// kParts where weights have more than one.
template <int64_t kWeights>
constexpr int64_t kProducts = kWeights == 1 ? 1 : kWeights + kParts;
template <int64_t kWeights>
constexpr int64_t kParticles = kWeights == 1 ? 1 : kParts;

/// Adds a product of split numbers, [parts] blocks of particles and of weights: the larger products
/// of their parts, in an order in which one of the two operands stays.
template <class Number, int64_t kWeights, bool kBothRows, class Then>
inline void multiply_parts(const Number* particles, const Number* weights, const Then& then) {
  using T = Tiles<kBothRows>;
  const auto particle_part = [&](int64_t i) {
    T::load_particles(particles + i * kBlockNumbers<Number>);
  };
  const auto weight_part = [&](int64_t i) { T::load_weights(weights + i * kBlockNumbers<Number>); };
  const auto product = [&] {
    T::template multiply<Number>();
    then();
  };
  if constexpr (kWeights == 1) {
    particle_part(0);
    weight_part(0);
    product();
    return;
  }
  particle_part(1);
  weight_part(1);
  product();
  particle_part(0);
  product();
  if constexpr (kWeights == 3) {
    weight_part(2);
    product();
  }
  weight_part(0);
  product();
  particle_part(1);
  product();
}

/// out [32][32] = the sum over `count` blocks of particles times weights, [parts] blocks each; of
/// bytes it is of int32. Calls meanwhile(i), i < count kProducts<kWeights>, after each product: the
/// vector units are free, and more than a few instructions of theirs at a time would keep tiles
/// waiting.
template <class Number, int64_t kWeights, bool kBothRows, class Meanwhile>
inline void multiply(const Number* particles, const Number* weights, int64_t count, float* out,
                     const Meanwhile& meanwhile) {
  settle_memory();
  Tiles<kBothRows>::clear();
  int64_t products = 0;
  const auto then = [&] { meanwhile(products++); };
  for (; count > 0; --count) {
    multiply_parts<Number, kWeights, kBothRows>(particles, weights, then);
    particles += kParticles<kWeights> * kBlockNumbers<Number>;
    weights += kWeights * kBlockNumbers<Number>;
  }
  Tiles<kBothRows>::store(out);
}

}  // namespace
}  // namespace crais
