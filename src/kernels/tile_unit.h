// The tiles of AMX. tests/kernels/emulated has this file in plain C++.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace crais {
namespace {

constexpr int64_t kTileRows = 16;  // of 64 bytes: 16 sums, 32 bfloat16 numbers, 64 of 8 bits

/// The operand of LDTILECFG: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// The tiles of this thread, for the lifetime of the object.
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

/// A barrier for the compiler, which does not know that loading tiles reads memory: earlier stores
/// are complete.
inline void settle_memory() { asm volatile("" ::: "memory"); }

using Bfloat16 = uint16_t;  // as bits

/// Products of blocks: of bfloat16 numbers with sums in float32, or of int8 with sums in int32.
/// Tiles 0 to 3 are the sums [two of particles][two of weights]. Tiles 4 and 5 hold particles, with
/// one row for each row of sums. Tiles 6 and 7 hold weights: a row has the pairs, or fours, of all
/// columns.
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
  static void load_particles(const void* block) {
    _tile_loadd(4, block, 64);
    if constexpr (kBothRows) _tile_loadd(5, second(block), 64);
  }
  static void load_weights(const void* block) {
    _tile_loadd(6, block, 64);
    _tile_loadd(7, second(block), 64);
  }
  template <class Number>
  static void multiply() {
    if constexpr (sizeof(Number) == sizeof(Bfloat16)) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kBothRows) {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    } else {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      if constexpr (kBothRows) {
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
      }
    }
  }
  /// Stores the sums as [32][32].
  static void store(float* to) {
    constexpr int64_t kRow = 2 * kTileRows, kStride = kRow * sizeof(float);
    _tile_stored(0, to, kStride);
    _tile_stored(1, to + kTileRows, kStride);
    if constexpr (kBothRows) {
      _tile_stored(2, to + kTileRows * kRow, kStride);
      _tile_stored(3, to + kTileRows * kRow + kTileRows, kStride);
    }
  }

 private:
  static const void* second(const void* block) {
    constexpr int64_t kTileBytes = 64 * kTileRows;
    return static_cast<const uint8_t*>(block) + kTileBytes;
  }
};

}  // namespace
}  // namespace crais
