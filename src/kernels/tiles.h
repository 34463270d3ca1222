// Products of blocks of 32 x 32 on AMX: bfloat16 numbers, float32 sums.
#pragma once

#include <immintrin.h>

#include "kernels/fused_kernel.h"
#include "kernels/simd.h"

namespace crais {
namespace {

using Bfloat16 = uint16_t;  // its bits

constexpr int64_t kTileRows = 16;       // of float32 sums, and pairs of rows of weights
constexpr int64_t kTileNumbers = 512;   // bfloat16 numbers of a tile
constexpr int64_t kBlock = kTileBlock;  // rows and columns of a block: two tiles each way
constexpr int64_t kBlockNumbers = kBlock * kBlock;
constexpr int64_t kParts = 3;  // a float32 number is the sum of so many bfloat16 numbers

inline int64_t blocks(int64_t units) { return (units + kBlock - 1) / kBlock; }

/// Compilers are not told that loading tiles reads memory: what was stored before is there after.
inline void settle_memory() { asm volatile("" ::: "memory"); }

/// What LDTILECFG reads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// This thread's tiles, while it lives.
class TileUnit {
 public:
  TileUnit() {
    asm volatile("" ::"r"(&configuration_) : "memory");
    _tile_loadconfig(&configuration_);
  }
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;
  ~TileUnit() { _tile_release(); }

 private:
  TileConfiguration configuration_;
};

/// Tiles 0 to 3 are sums [two of particles][two of units], 4 and 5 particles, 6 and 7 weights.
template <bool kBothRows>
struct Tiles {
  static void clear() {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kBothRows) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  static void load_particles(const Bfloat16* block) {
    _tile_loadd(4, block, 64);
    if constexpr (kBothRows) _tile_loadd(5, block + kTileNumbers, 64);
  }
  static void load_weights(const Bfloat16* block) {
    _tile_loadd(6, block, 64);
    _tile_loadd(7, block + kTileNumbers, 64);
  }
  static void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kBothRows) {
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  static void store(float* block) {
    constexpr int kStride = kBlock * sizeof(float);
    _tile_stored(0, block, kStride);
    _tile_stored(1, block + kTileRows, kStride);
    if constexpr (kBothRows) {
      _tile_stored(2, block + kTileRows * kBlock, kStride);
      _tile_stored(3, block + kTileRows * kBlock + kTileRows, kStride);
    }
  }
};

/// Products of tiles in a step of `multiply`, by the parts of weights: particles have as many as
/// kParts where weights have more than one.
template <int64_t kWeights>
constexpr int64_t kProducts = kWeights == 1 ? 1 : kWeights + kParts;
template <int64_t kWeights>
constexpr int64_t kParticles = kWeights == 1 ? 1 : kParts;

/// Adds a product of split numbers, [parts][32][32] of particles and of weights: the larger
/// products of their parts, the smallest first, in an order in which one of the two operands stays.
template <int64_t kWeights, bool kBothRows, class Then>
inline void multiply_parts(const Bfloat16* particles, const Bfloat16* weights, const Then& then) {
  using T = Tiles<kBothRows>;
  const auto particle_part = [&](int64_t i) { T::load_particles(particles + i * kBlockNumbers); };
  const auto weight_part = [&](int64_t i) { T::load_weights(weights + i * kBlockNumbers); };
  const auto product = [&] {
    T::multiply();
    then();
  };
  if constexpr (kWeights == 1) {
    particle_part(0);
    weight_part(0);
    product();
    return;
  }
  particle_part(2);
  weight_part(0);
  product();
  particle_part(1);
  product();
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
}

/// out [32][32] = the sum over `count` blocks of particles times weights, [parts][32][32] each.
/// Calls meanwhile(i), i < count kProducts<kWeights>, after each product: the vector units are
/// free, and more than a few instructions of theirs at a time would keep tiles waiting.
template <int64_t kWeights, bool kBothRows, class Meanwhile>
inline void multiply(const Bfloat16* particles, const Bfloat16* weights, int64_t count, float* out,
                     const Meanwhile& meanwhile) {
  settle_memory();
  Tiles<kBothRows>::clear();
  int64_t products = 0;
  const auto then = [&] { meanwhile(products++); };
  for (; count > 0; --count) {
    multiply_parts<kWeights, kBothRows>(particles, weights, then);
    particles += kParticles<kWeights> * kBlockNumbers;
    weights += kWeights * kBlockNumbers;
  }
  Tiles<kBothRows>::store(out);
}

}  // namespace
}  // namespace crais
