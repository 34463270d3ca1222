// Products of blocks of 32 x 32 on AMX: of bytes, or of bfloat16 numbers split into parts.
#pragma once

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"
#include "kernels/tile_unit.h"

namespace crais {
namespace {

constexpr int64_t kBlock = kTileBlock;  // rows of particles, columns of weights: two tiles each way
constexpr int64_t kBlockSums = kBlock * kBlock;
constexpr int64_t kParts = 2;  // of a particle's number: each the rounded rest of those before it

/// The numbers in a row of particles of a block: each multiplies one row of weights.
template <class Number>
constexpr int64_t kRowNumbers = 2 * kTileBlock / static_cast<int64_t>(sizeof(Number));
template <class Number>
constexpr int64_t kBlockNumbers = kBlock* kRowNumbers<Number>;

/// The number of blocks for `units` units, as columns of weights and as rows of particles.
inline int64_t blocks(int64_t units) { return (units + kBlock - 1) / kBlock; }
template <class Number>
int64_t row_blocks(int64_t units) {
  return (units + kRowNumbers<Number> - 1) / kRowNumbers<Number>;
}

/// The number of tile products in a step of `multiply`, by the number of parts of weights.
/// Particles have kParts parts if weights have more than one.
template <int64_t kWeights>
constexpr int64_t kProducts = kWeights == 1 ? 1 : kWeights + kParts;
template <int64_t kWeights>
constexpr int64_t kParticles = kWeights == 1 ? 1 : kParts;

/// Adds a product of split numbers, [parts] blocks of particles and of weights: the larger products
/// of their parts. Their order keeps one of the two operands loaded.
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

/// out [32][32] = the sum over `count` blocks of particles times weights, [parts] blocks each;
/// int32 for bytes. After each product it calls meanwhile(i), i < count kProducts<kWeights>, for
/// work on the vector units, which are free. Each call should take only a few instructions: more
/// would make the tiles wait.
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
