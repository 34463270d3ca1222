// src/kernels/tile_unit.h by vectors, for every processor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/simd.h"

namespace crais {
namespace {

constexpr int64_t kTileRows = 16;
using Bfloat16 = uint16_t;

/// Rows of 16 words: sums, pairs or fours.
using TileRow = IntVec;
struct EmulatedTile {
  TileRow rows[kTileRows];
};
thread_local EmulatedTile emulated_tiles[8];

struct TileUnit {
  ~TileUnit() { std::fill_n(emulated_tiles, 8, EmulatedTile{}); }
};

inline void settle_memory() {}

template <bool kBothRows>
struct Tiles {
  static void clear() { std::fill_n(emulated_tiles, kBothRows ? 4 : 2, EmulatedTile{}); }
  static void load_particles(const void* block) {
    load(block, emulated_tiles + 4, kBothRows ? 2 : 1);
  }
  static void load_weights(const void* block) { load(block, emulated_tiles + 6, 2); }
  template <class Number>
  static void multiply() {
    for (int i = 0; i < (kBothRows ? 4 : 2); ++i)
      add<Number>(emulated_tiles[i], emulated_tiles[4 + i / 2], emulated_tiles[6 + i % 2]);
  }
  static void store(float* to) {
    for (int i = 0; i < (kBothRows ? 4 : 2); ++i)
      for (int64_t row = 0; row < kTileRows; ++row)
        *reinterpret_cast<TileRow*>(to + (i / 2 * kTileRows + row) * 2 * kTileRows +
                                    i % 2 * kTileRows) = emulated_tiles[i].rows[row];
  }

 private:
  static void load(const void* block, EmulatedTile* to, int64_t count) {
    std::copy_n(static_cast<const TileRow*>(block), count * kTileRows, to->rows);
  }
  template <class Number>
  static void add(EmulatedTile& sum, const EmulatedTile& x, const EmulatedTile& w) {
    for (int64_t row = 0; row < kTileRows; ++row)
      for (int64_t group = 0; group < kTileRows; ++group)
        add_group(sum.rows[row], splat(x.rows[row][group]), w.rows[group], Number{});
  }
  static void add_group(IntVec& sum, IntVec x, IntVec w, Bfloat16 /*kind*/) {
    constexpr int kUpper = -0x10000;
    const Vec even = from_bits(x << 16) * from_bits(w << 16);
    sum = bits(from_bits(sum) + even + from_bits(x & kUpper) * from_bits(w & kUpper));
  }
  static void add_group(IntVec& sum, IntVec x, IntVec w, int8_t /*kind*/) {
    for (int shift : {24, 16, 8, 0}) sum += ((x << shift) >> 24) * ((w << shift) >> 24);
  }
};

}  // namespace
}  // namespace crais
